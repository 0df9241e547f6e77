# SPDX-License-Identifier: Apache-2.0
"""Tests of fetch_debian: which versions are accepted, and what is said when none is.

apt and dpkg-deb are replaced by small scripts on PATH that serve files from a folder;
`dpkg --compare-versions` is the real one.
"""
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from bazel import fetch_debian

FAKE_APT_CACHE = """#!/bin/sh
echo "apt-cache $*" >> "$FAKE/calls"
case "$*" in *Dir::State::Lists*) cat "$FAKE/private_madison" ;; *) cat "$FAKE/system_madison" ;; esac
"""

FAKE_APT_GET = """#!/bin/sh
echo "apt-get $*" >> "$FAKE/calls"
case "$1" in update) exit 0 ;; esac
for word in "$@"; do
  case "$word" in
    *::*) ;;
    *=*) if [ -e "$FAKE/archive/$word" ]; then cp "$FAKE/archive/$word" "$(echo "$word" | tr = _).deb"
         else echo "E: 404 $word" >&2; exit 100; fi ;;
  esac
done
"""

# A fake package's text is its own description: "name version".
FAKE_DPKG_DEB = """#!/bin/sh
case "$1" in
  --show) shift 2; cat "$1" ;;
  -x) cp "$2" "$3/" ;;
esac
"""


class UpstreamTest(unittest.TestCase):
    def test_revision_and_epoch_are_cut(self):
        self.assertEqual(fetch_debian.upstream("1:1.2.13.dfsg-1+deb12u2"), "1.2.13.dfsg")

    def test_rebuild_suffix_belongs_to_the_revision(self):
        self.assertEqual(fetch_debian.upstream("20220601+dfsg-1+b1"), "20220601+dfsg")

    def test_only_the_last_dash_starts_the_revision(self):
        self.assertEqual(fetch_debian.upstream("2.0-rc1-3"), "2.0-rc1")

    def test_native_version_has_no_revision(self):
        self.assertEqual(fetch_debian.upstream("4.5"), "4.5")

    def test_rebuild_of_a_native_version_is_the_same_release(self):
        self.assertEqual(fetch_debian.upstream("4.5+b2"), "4.5")


class ParseMadisonTest(unittest.TestCase):
    def test_binary_versions_are_kept_and_sources_left_out(self):
        text = ("zlib1g-dev | 1:1.2.13.dfsg-1 | http://host/debian bookworm/main amd64 Packages\n"
                "zlib1g-dev | 1:1.3-1 | http://host/debian trixie/main Sources\n"
                " libre2-dev | 20220601+dfsg-1+b1 | http://host/debian bookworm/main amd64 Packages\n")
        self.assertEqual(fetch_debian.parse_madison(text),
                         {"zlib1g-dev": ["1:1.2.13.dfsg-1"], "libre2-dev": ["20220601+dfsg-1+b1"]})

    def test_empty_lists_offer_nothing(self):
        self.assertEqual(fetch_debian.parse_madison(""), {})


class ChooseTest(unittest.TestCase):
    def test_locked_version_is_taken(self):
        self.assertEqual(fetch_debian.choose(["1.0-1"], "1.0-1"), "1.0-1")

    def test_newest_build_of_the_release_wins(self):
        self.assertEqual(fetch_debian.choose(["1.0-1", "1.0-1+deb12u10", "1.0-1+deb12u9"], "1.0-1"), "1.0-1+deb12u10")

    def test_rebuild_is_newer_than_the_build(self):
        self.assertEqual(fetch_debian.choose(["1.0-1", "1.0-1+b1"], "1.0-1"), "1.0-1+b1")

    def test_other_release_is_never_taken(self):
        self.assertIsNone(fetch_debian.choose(["1.1-1"], "1.0-1"))

    def test_older_build_is_never_taken(self):
        self.assertIsNone(fetch_debian.choose(["1.0-1"], "1.0-1+deb12u1"))

    def test_nothing_offered_gives_nothing(self):
        self.assertIsNone(fetch_debian.choose([], "1.0-1"))


class CheckTest(unittest.TestCase):
    LOCKED = {"version": "1.0-1", "sha256": "aa"}

    def test_same_version_and_content_passes_silently(self):
        self.assertEqual(fetch_debian.check("libx", dict(self.LOCKED), self.LOCKED), "")

    def test_newer_build_passes_with_a_note(self):
        note = fetch_debian.check("libx", {"version": "1.0-1+deb12u1", "sha256": "bb"}, self.LOCKED)
        self.assertIn("libx 1.0-1+deb12u1 is a newer build of the locked 1.0-1", note)

    def test_same_version_with_other_content_is_refused(self):
        with self.assertRaisesRegex(fetch_debian.FetchError, "sha256 is bb.* has aa"):
            fetch_debian.check("libx", {"version": "1.0-1", "sha256": "bb"}, self.LOCKED)

    def test_other_release_is_refused_with_the_command_to_type(self):
        with self.assertRaisesRegex(fetch_debian.FetchError, "offer 1.1-1.*fetch_debian.py .*--update"):
            fetch_debian.check("libx", {"version": "1.1-1", "sha256": "bb"}, self.LOCKED)


class FetchTest(unittest.TestCase):
    """The whole command against fake apt and dpkg-deb."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = pathlib.Path(temporary.name)
        for folder in ("bin", "archive", "into", "home"):
            (self.root / folder).mkdir()
        for name, text in (("apt-cache", FAKE_APT_CACHE), ("apt-get", FAKE_APT_GET), ("dpkg-deb", FAKE_DPKG_DEB)):
            script = self.root / "bin" / name
            script.write_text(text)
            script.chmod(0o755)
        self.offer("system", {})
        self.offer("private", {})

    def offer(self, lists, versions):
        text = "".join(f"{n} | {v} | http://host bookworm/main amd64 Packages\n" for n, v in versions.items())
        (self.root / f"{lists}_madison").write_text(text)

    def publish(self, name, version):
        content = f"{name} {version}"
        (self.root / "archive" / f"{name}={version}").write_text(content)
        return {"version": version, "sha256": hashlib.sha256(content.encode()).hexdigest()}

    def fetch(self, lock, *packages, path="/usr/bin:/bin"):
        lock_path = self.root / "lock.json"
        lock_path.write_text(json.dumps(lock))
        environment = dict(os.environ, PATH=f"{self.root}/bin:{path}", FAKE=str(self.root),
                           HOME=str(self.root / "home"), XDG_CACHE_HOME="")
        command = [sys.executable, fetch_debian.__file__, "--lock", str(lock_path), "--into", str(self.root / "into")]
        return subprocess.run(command + list(packages), env=environment, capture_output=True, text=True)

    def calls(self):
        return (self.root / "calls").read_text()

    def unpacked(self):
        return sorted(path.name for path in (self.root / "into").iterdir())

    def test_system_lists_are_enough_no_update(self):
        lock = {"libx": self.publish("libx", "1.0-1")}
        self.offer("system", {"libx": "1.0-1"})
        result = self.fetch(lock, "libx")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(self.unpacked(), ["libx_1.0-1.deb"])
        self.assertNotIn("update", self.calls())

    def test_empty_system_lists_are_refreshed_in_the_home_folder(self):
        lock = {"libx": self.publish("libx", "1.0-1")}
        self.offer("private", {"libx": "1.0-1"})
        result = self.fetch(lock, "libx")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.unpacked(), ["libx_1.0-1.deb"])
        self.assertIn(f"Dir::State::Lists={self.root}/home/.cache/ssl_apt/lists", self.calls())

    def test_one_refresh_serves_the_following_fetches(self):
        lock = {"libx": self.publish("libx", "1.0-1"), "liby": self.publish("liby", "2.0-1")}
        self.offer("private", {"libx": "1.0-1", "liby": "2.0-1"})
        self.fetch(lock, "libx")
        self.fetch(lock, "liby")
        self.assertEqual(self.unpacked(), ["libx_1.0-1.deb", "liby_2.0-1.deb"])
        self.assertEqual(self.calls().count("apt-get update"), 1)

    def test_stale_system_lists_fall_back_to_refreshed_ones(self):
        lock = {"libx": {"version": "1.0-1", "sha256": "of a build that the archive dropped"}}
        self.publish("libx", "1.0-1+deb12u1")
        self.offer("system", {"libx": "1.0-1"})
        self.offer("private", {"libx": "1.0-1+deb12u1"})
        result = self.fetch(lock, "libx")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("note: libx 1.0-1+deb12u1 is a newer build", result.stderr)

    def test_other_release_fails_and_unpacks_nothing(self):
        lock = {"libx": {"version": "1.0-1", "sha256": "aa"}}
        self.offer("system", {"libx": "1.1-1"})
        self.offer("private", {"libx": "1.1-1"})
        result = self.fetch(lock, "libx")
        self.assertEqual(result.returncode, 1)
        self.assertIn("libx: third_party/debian.lock.json has 1.0-1", result.stderr)
        self.assertIn("offer 1.1-1", result.stderr)
        self.assertEqual(self.unpacked(), [])

    def test_changed_content_fails_and_unpacks_nothing(self):
        self.publish("libx", "1.0-1")
        self.offer("system", {"libx": "1.0-1"})
        result = self.fetch({"libx": {"version": "1.0-1", "sha256": "aa"}}, "libx")
        self.assertEqual(result.returncode, 1)
        self.assertIn("One version has one content", result.stderr)
        self.assertEqual(self.unpacked(), [])

    def test_package_outside_the_lock_names_the_command_that_adds_it(self):
        result = self.fetch({}, "libx")
        self.assertEqual(result.returncode, 1)
        self.assertIn("libx: not in third_party/debian.lock.json", result.stderr)
        self.assertIn("--update libx", result.stderr)

    def test_machine_without_dpkg_is_told_what_is_needed(self):
        result = self.fetch({}, "libx", path="")
        self.assertEqual(result.returncode, 1)
        self.assertIn("dpkg: not found. Debian packages are fetched with apt and dpkg: build on Debian 12", result.stderr)


if __name__ == "__main__":
    unittest.main()
