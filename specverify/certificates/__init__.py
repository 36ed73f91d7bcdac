"""Certificates: the evidence of a verdict in a file, and a small checker that shares no code with what produced it.

``enumerations`` adds up the tree of an enumeration. Of a proof, ``checker`` is exact arithmetic on what the file lists;
both import the standard library alone. ``runs`` runs the algorithm itself beside the file, by ``specverify.reference``;
``files`` reads the file. Nothing here imports interception, enumeration or the solver.
"""

from specverify.certificates.checker import CertificateRefused
from specverify.certificates.enumerations import ENUMERATION
from specverify.certificates.files import FORMAT, Checked, check_certificate

__all__ = ["ENUMERATION", "FORMAT", "CertificateRefused", "Checked", "check_certificate"]
