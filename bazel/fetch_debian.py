"""Downloads Debian packages through apt and unpacks them, checked against a lock file.

Usage: fetch_debian.py --lock debian.lock.json --into DIR PACKAGE...
       fetch_debian.py --update --lock debian.lock.json        (rewrites the lock file)

Trust: apt verifies the archive's signature. The lock file records, for each package, the
version and sha256 that were seen. The same version must have the same sha256. Another
version of the same upstream release (a security build) is taken with a note on stderr;
anything else is an error that says what to do.
"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def upstream(version):
    """'1:1.2.13.dfsg-1+deb12u2' -> '1.2.13.dfsg'."""
    return re.sub(r"-[^-]*$", "", version.split(":", 1)[-1])


def apt_options(state):
    """Options that keep apt's lists and cache in a folder of our own, so that no root is needed."""
    for folder in ("lists/partial", "cache/archives/partial"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    return ["-o", f"Dir::State::Lists={state}/lists", "-o", f"Dir::Cache={state}/cache",
            "-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User=root"]


def download(packages, folder):
    """Downloads `packages`; refreshes a private copy of apt's lists when the system's do not do."""
    command = ["apt-get", "download", "-qq"]
    first = subprocess.run(command + packages, cwd=folder, capture_output=True, text=True)
    if first.returncode == 0:
        return
    state = folder / "apt"
    options = apt_options(state)
    for step in (["apt-get", "update", "-qq"] + options, command + options + packages):
        result = subprocess.run(step, cwd=folder, capture_output=True, text=True)
        if result.returncode:
            sys.exit(f"{' '.join(step[:2])} failed for {' '.join(packages)}:\n{result.stderr}"
                     "Are Debian 12's package sources set up in /etc/apt, and reachable?")


def describe(deb):
    fields = subprocess.run(["dpkg-deb", "-f", deb, "Package", "Version"], check=True,
                            capture_output=True, text=True).stdout
    name, version = re.search(r"Package: (\S+)\nVersion: (\S+)", fields).groups()
    return name, {"version": version, "sha256": hashlib.sha256(deb.read_bytes()).hexdigest()}


def check(name, seen, locked):
    """Returns nothing when `seen` is acceptable; notes a security build; exits otherwise."""
    if seen == locked:
        return
    if seen["version"] == locked["version"]:
        sys.exit(f"{name} {seen['version']}: sha256 is {seen['sha256']}, but third_party/debian.lock.json "
                 f"has {locked['sha256']}. The same version must have the same content: do not build; "
                 "check the package source.")
    if upstream(seen["version"]) != upstream(locked["version"]):
        sys.exit(f"{name}: the archive offers {seen['version']}, but third_party/debian.lock.json has "
                 f"{locked['version']}. Build on Debian 12, or move to the new release: run "
                 "`python3 bazel/fetch_debian.py --update --lock third_party/debian.lock.json`, then the tests.")
    print(f"note: {name} {seen['version']} is a newer build of the locked {locked['version']}; taken.",
          file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--lock", type=pathlib.Path, required=True)
    parser.add_argument("--into", type=pathlib.Path)
    parser.add_argument("--update", action="store_true", help="rewrite the lock file for all its packages")
    parser.add_argument("packages", nargs="*")
    args = parser.parse_args()
    lock = json.loads(args.lock.read_text())
    unknown = [name for name in args.packages if name not in lock]
    if unknown and not args.update:
        sys.exit(f"{', '.join(unknown)}: not in {args.lock}; add with --update")
    wanted = sorted(set(args.packages) | set(lock)) if args.update else args.packages
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        os.chmod(folder, 0o755)
        download(wanted, folder)
        debs = {deb: describe(deb) for deb in sorted(folder.glob("*.deb"))}
        if args.update:
            args.lock.write_text(json.dumps(dict(sorted(debs.values())), indent=1) + "\n")
            return
        for name, seen in debs.values():
            check(name, seen, lock[name])
        for deb in debs:
            subprocess.run(["dpkg-deb", "-x", deb, args.into], check=True)


if __name__ == "__main__":
    main()
