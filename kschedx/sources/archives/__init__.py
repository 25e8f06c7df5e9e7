"""Tar and zip archives, read where they are: no member is ever written anywhere, and no link is followed.

A link or a device under the name of a manifest that is wanted is refused, and so is any name that leads out of the
archive; among logs and the like, links are left out with them. An archive inside of an archive is not opened.
"""
