"""Certificates: the evidence of a verdict in a file, and a small checker that shares no code with the writer.

``enumerations`` sums the tree of an enumeration. ``checker`` checks a proof by exact arithmetic on the content of the
file. Both import only the standard library. ``runs`` compares the tree of a proof with runs of the algorithm from
``specverify.reference``; ``certificate_files`` reads the file. Nothing here imports interception, enumeration or the
solver.
"""

from specverify.certificates.certificate_files import FORMAT, Checked, check_certificate
from specverify.certificates.checker import CertificateRefused
from specverify.certificates.enumerations import ENUMERATION
from specverify.certificates.replay import NothingToReplay

__all__ = ["ENUMERATION", "FORMAT", "CertificateRefused", "Checked", "NothingToReplay", "check_certificate"]
