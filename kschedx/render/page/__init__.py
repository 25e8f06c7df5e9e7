"""An answer to be shown and shared: as one HTML file, as Markdown for a ticket, or as a picture.

`model` defines what a page can hold. One module for each document creates a page (`explanation`), and `html`,
`markdown`, and `svg` write it. The browser's part of the HTML file is `page.js` and `page.css`, which need no network.
"""
