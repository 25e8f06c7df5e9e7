"""The content of `kschedx snapshot`: what scheduling reads of a cluster, reduced, and anonymized on request."""
