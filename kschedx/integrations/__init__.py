"""Small files by which other programs ask kschedx; `kschedx integrations NAME` prints one."""
