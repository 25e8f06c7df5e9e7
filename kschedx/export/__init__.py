"""What `kschedx snapshot` writes: what scheduling reads of a cluster, cut down and, if asked for, anonymized."""
