#!/bin/sh
exec coqc -R . Lossless -w -notation-overridden,-ambiguous-paths "$@"
