#!/usr/bin/env bash
# Builds a release into dist/ (or the directory that is given): a tar.gz for cargo-binstall and for those who unpack
# by hand, a .deb, a .rpm, and their checksums. The same commit gives the same bytes wherever the same rustc builds
# it. 'cargo install cargo-deb cargo-generate-rpm' gives what it needs beside cargo, tar and gzip.
set -euo pipefail
cd "$(dirname "$0")/.."

out=${1:-dist}
target=$(rustc -vV | sed -n 's/^host: //p')
version=$(cargo pkgid | sed 's/.*[#@]//')
name=oxundo-$version-$target
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

for tool in cargo-deb cargo-generate-rpm; do
    command -v "$tool" >/dev/null || {
        echo "error: $tool is not installed" >&2
        echo "hint: run 'cargo install cargo-deb cargo-generate-rpm'" >&2
        exit 1
    }
done

# Where it was built, and whose machine it was, is in no binary.
cargo_home=${CARGO_HOME:-$HOME/.cargo}
export RUSTFLAGS="--remap-path-prefix=$PWD=. --remap-path-prefix=$cargo_home=/cargo ${RUSTFLAGS:-}"
export CARGO_TARGET_DIR=$PWD/target/dist
cargo build --locked --release

rm -rf "$out"
mkdir -p "$out"
stage=$CARGO_TARGET_DIR/stage
rm -rf "$stage"
mkdir -p "$stage/$name/man"
cp "$CARGO_TARGET_DIR"/release/{oxundo,git-oxundo} README.md CHANGELOG.md LICENSE "$stage/$name"
cp man/*.[17] "$stage/$name/man"
cp -r completions "$stage/$name"
chmod -R u=rwX,go=rX "$stage/$name"
tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu \
    -C "$stage" -c "$name" | gzip -9n >"$out/$name.tar.gz"
cargo deb --no-build --no-strip --output "$out/"
cargo generate-rpm --target-dir "$CARGO_TARGET_DIR" --output "$out/"
(cd "$out" && sha256sum -- * >SHA256SUMS && sha256sum --check SHA256SUMS)
