"""An answer to be shown and shared: as one HTML file, as Markdown for a ticket, as a picture.

`model` says what a page can hold; a module per document makes one of it (`explanation`); `html`, `markdown` and `svg`
write it down. The browser's part of the HTML file is `page.js` and `page.css`; it needs no network.
"""
