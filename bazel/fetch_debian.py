# SPDX-License-Identifier: Apache-2.0
"""Downloads Debian packages through apt and unpacks them, checked against a lock file.

Usage: fetch_debian.py --lock debian.lock.json --into DIR PACKAGE...
       fetch_debian.py --lock debian.lock.json --update [PACKAGE...]   (rewrites the lock file)

Trust: apt verifies the archive's signature. The lock file records, for each package, the
version and sha256 that were seen. The same version must have the same sha256. A newer
build of the same upstream release (a security build) is taken with a note on stderr;
anything else is an error that says what to do.

Lists: the system's package lists are used when they offer what is wanted. When they are
empty or stale, a private copy is refreshed in the user's cache folder, so that neither
root nor a change to the machine is needed. Concurrent runs share one refresh.
"""
import argparse
import contextlib
import fcntl
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ARCHITECTURE = "amd64"
LISTS_FRESH_S = 600
UPDATE = "python3 bazel/fetch_debian.py --lock third_party/debian.lock.json --update"


class FetchError(Exception):
    """A refusal or a failure; the message says what to do."""


def upstream(version):
    """'1:1.2.13.dfsg-1+deb12u2' -> '1.2.13.dfsg'; a rebuild suffix such as +b1 is no new release."""
    without_epoch = version.split(":", 1)[-1]
    if "-" in without_epoch:
        return without_epoch.rsplit("-", 1)[0]
    return re.sub(r"\+b\d+$", "", without_epoch)


def compare_versions(a, b):
    """Debian's order: negative, zero or positive as `a` is older than, equal to or newer than `b`."""
    if a == b:
        return 0
    newer = subprocess.run(["dpkg", "--compare-versions", a, "gt", b]).returncode == 0
    return 1 if newer else -1


def parse_madison(text):
    """`apt-cache madison` output -> {package: [versions that can be downloaded]}, sources left out."""
    offered = {}
    for line in text.splitlines():
        columns = [column.strip() for column in line.split("|")]
        if len(columns) == 3 and columns[2].endswith(" Packages"):
            offered.setdefault(columns[0], []).append(columns[1])
    return offered


def choose(versions, locked):
    """The newest of `versions` that is a build of `locked`'s upstream release and not older; or None."""
    builds = [v for v in versions if upstream(v) == upstream(locked) and compare_versions(v, locked) >= 0]
    return max(builds, key=functools.cmp_to_key(compare_versions), default=None)


def refusal(name, versions, locked):
    """Why no offered version is acceptable, and what to do."""
    offer = "offer " + ", ".join(sorted(set(versions))) if versions else "do not have it"
    return (f"{name}: third_party/debian.lock.json has {locked}, but this machine's package sources {offer}. "
            "Build on Debian 12 with its main and security sources set up in /etc/apt; or, to move to "
            f"another release, run `{UPDATE}`, then the tests.")


def check(name, seen, locked):
    """Returns a note or '' when the downloaded package is acceptable; raises FetchError otherwise."""
    if seen["version"] != locked["version"]:
        if choose([seen["version"]], locked["version"]) is None:
            raise FetchError(refusal(name, [seen["version"]], locked["version"]))
        return f"{name} {seen['version']} is a newer build of the locked {locked['version']}; taken"
    if seen["sha256"] != locked["sha256"]:
        raise FetchError(f"{name} {seen['version']}: sha256 is {seen['sha256']}, but third_party/debian.lock.json "
                         f"has {locked['sha256']}. One version has one content: do not build with this file; "
                         "find out where the package source got it.")
    return ""


def run(command, folder=None):
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True)
    except FileNotFoundError:
        raise FetchError(f"{command[0]}: not found. Debian packages are fetched with apt and dpkg: "
                         "build on Debian 12.") from None


def offered_versions(options, packages):
    return parse_madison(run(["apt-cache"] + options + ["madison"] + packages).stdout)


def apt_get_download(options, targets, folder):
    """Downloads `targets` (name or name=version) into `folder`; returns apt's complaint, '' when it worked."""
    # As root, apt drops to a user who cannot write here, and says so for each file.
    command = ["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root"]
    result = run(command + options + targets, folder)
    return result.stderr.strip() or "apt-get download failed" if result.returncode else ""


def cache_folder(fallback):
    """The user's own folder for refreshed lists; `fallback` when there is no writable home."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = pathlib.Path(base) / "ssl_apt"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    return fallback / "apt"


def private_lists(state):
    """Refreshes the private lists unless they are fresh; returns (apt options, complaint of the refresh)."""
    for part in ("lists/partial", "cache/archives/partial"):
        (state / part).mkdir(parents=True, exist_ok=True)
    options = ["-o", f"Dir::State::Lists={state}/lists", "-o", f"Dir::Cache={state}/cache",
               "-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User=root"]
    stamp = state / "refreshed"
    with open(state / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and abs(time.time() - stamp.stat().st_mtime) < LISTS_FRESH_S:
            return options, ""
        result = run(["apt-get", "update", "-qq"] + options)
        # One unreachable third-party source makes apt fail; the Debian lists may be here all the same.
        if result.returncode == 0:
            stamp.touch()
        return options, result.stderr.strip()


def download(packages, lock, folder):
    """Downloads the acceptable version of each package, from the system's lists or refreshed ones."""
    complaint, problems = "", []
    for lists in (lambda: ([], ""), lambda: private_lists(cache_folder(folder))):
        options, complaint = lists()
        offered = offered_versions(options, packages)
        chosen = {name: choose(offered.get(name, []), lock[name]["version"]) for name in packages}
        problems = [refusal(n, offered.get(n, []), lock[n]["version"]) for n in packages if not chosen[n]]
        if not problems:
            failure = apt_get_download(options, [f"{n}={v}" for n, v in chosen.items()], folder)
            if not failure:
                return
            problems = [failure]
    raise FetchError("\n".join(problems + ([f"apt-get update said: {complaint}"] if complaint else [])))


def describe(deb):
    text = subprocess.run(["dpkg-deb", "--show", "--showformat=${Package} ${Version}", deb], check=True,
                          capture_output=True, text=True).stdout
    name, version = text.split()
    return name, {"version": version, "sha256": hashlib.sha256(deb.read_bytes()).hexdigest()}


def fetch(packages, lock, into):
    unknown = [name for name in packages if name not in lock]
    if unknown:
        raise FetchError(f"{', '.join(unknown)}: not in third_party/debian.lock.json; run `{UPDATE} "
                         f"{' '.join(unknown)}`")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        download(packages, lock, folder)
        debs = {deb: describe(deb) for deb in sorted(folder.glob("*.deb"))}
        missing = set(packages) - {name for name, _ in debs.values()}
        if missing:
            raise FetchError(f"apt-get download left out {', '.join(sorted(missing))}")
        for name, seen in debs.values():
            note = check(name, seen, lock[name])
            if note:
                print(f"note: {note}", file=sys.stderr)
        for deb in debs:
            subprocess.run(["dpkg-deb", "-x", deb, into], check=True)


def update(packages, lock_path, lock):
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        options, complaint = private_lists(cache_folder(folder))
        failure = apt_get_download(options, sorted(set(packages) | set(lock)), folder)
        if failure:
            raise FetchError(f"{failure}\n{complaint}")
        seen = dict(sorted(describe(deb) for deb in folder.glob("*.deb")))
    new = lock_path.with_suffix(".new")
    new.write_text(json.dumps(seen, indent=1) + "\n")
    new.replace(lock_path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--lock", type=pathlib.Path, required=True)
    parser.add_argument("--into", type=pathlib.Path)
    parser.add_argument("--update", action="store_true", help="rewrite the lock file for all its packages")
    parser.add_argument("packages", nargs="*")
    args = parser.parse_args()
    try:
        architecture = run(["dpkg", "--print-architecture"]).stdout.strip()
        if architecture != ARCHITECTURE:
            raise FetchError(f"architecture is {architecture or 'unknown'}, but only Debian's {ARCHITECTURE} is supported")
        lock = json.loads(args.lock.read_text())
        if args.update:
            update(args.packages, args.lock, lock)
        else:
            fetch(args.packages, lock, args.into)
    except (FetchError, OSError, subprocess.CalledProcessError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
