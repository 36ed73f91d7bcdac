"""Certificates: the evidence of a proof in a file, and a small checker that shares no code with what produced it.

``checker`` is exact arithmetic on what the file lists and imports the standard library alone; ``runs`` runs the
algorithm itself beside the file, by ``specverify.reference``; ``files`` reads the file. Nothing here imports
interception, enumeration or the solver.
"""

from specverify.certificates.checker import CertificateRefused
from specverify.certificates.files import FORMAT, Checked, check_certificate

__all__ = ["FORMAT", "CertificateRefused", "Checked", "check_certificate"]
