#!/usr/bin/python3
"""Writes a bill of materials (CycloneDX 1.5, JSON): the libraries that the one-file program and the wheels hold, as this
machine has them, on Debian.

    sbom.py VERSION OUTPUT

Its time is that of SOURCE_DATE_EPOCH, so that two runs are equal. THIRD-PARTY.md has the texts of the licences.
"""

import datetime
import json
import os
import pathlib
import re
import sys
import urllib.parse
import uuid

from third_party import held_packages, output_of

FORMAT = "${Package}\t${Version}\t${Architecture}\t${source:Package}\t${source:Version}\t${Homepage}\n"
RELEASE = re.search(r'(?m)^VERSION_CODENAME="?(\w+)', pathlib.Path("/etc/os-release").read_text())


def purl(package, version, architecture):
    """https://github.com/package-url/purl-spec, of type deb."""
    facts = {"arch": architecture} | ({"distro": RELEASE[1]} if RELEASE else {})
    return f"pkg:deb/debian/{package}@{urllib.parse.quote(version)}?{urllib.parse.urlencode(facts)}"


def components():
    packages = held_packages()
    if not packages:
        sys.exit("sbom.py: Debian's development packages of tools/packages.txt are not installed")
    for line in output_of("dpkg-query", "--show", f"--showformat={FORMAT}", *packages).splitlines():
        package, version, architecture, source, source_version, homepage = line.split("\t")
        found = {"type": "library", "bom-ref": purl(package, version, architecture), "name": package, "version": version,
                 "purl": purl(package, version, architecture),
                 "properties": [{"name": "debian:source", "value": f"{source} {source_version}"}]}
        if homepage:
            found["externalReferences"] = [{"type": "website", "url": homepage}]
        yield found


def bill(version):
    parts = list(components())
    moment = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.timezone.utc)
    subject = {"type": "application", "bom-ref": "tessera-arrays", "name": "tessera-arrays", "version": version,
               "licenses": [{"license": {"id": "MIT"}}]}
    told = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
            "metadata": {"timestamp": moment.strftime("%Y-%m-%dT%H:%M:%SZ"), "component": subject}, "components": parts,
            "dependencies": [{"ref": "tessera-arrays", "dependsOn": [part["bom-ref"] for part in parts]}]}
    # Of what it says, so that the same bill has the same number.
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(told, sort_keys=True))
    return told | {"serialNumber": f"urn:uuid:{serial}"}


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    pathlib.Path(sys.argv[2]).write_text(json.dumps(bill(sys.argv[1]), indent=1) + "\n", encoding="utf-8")
