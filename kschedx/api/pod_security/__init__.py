"""Pod Security admission: which pods a namespace's Pod Security Standard lets in, in the API server's words.

Upstream: k8s.io/pod-security-admission.
"""
