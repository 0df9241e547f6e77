#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
echo "tools/coverage.py measures coverage in this workspace" >&2
exit 1
