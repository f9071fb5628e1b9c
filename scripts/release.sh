#!/usr/bin/env bash
# Builds a release into dist/ (or the directory that is given): a tar.gz for each system, for cargo-binstall and for
# those who unpack by hand; a .deb and a .rpm of this machine's; and their checksums. The same commit gives the same
# bytes wherever the same rustc builds it. What it needs beside cargo, tar and gzip:
#
#     cargo install cargo-deb cargo-generate-rpm
#     cargo install cargo-zigbuild; pip install ziglang     # for the other systems; they are left out without
set -euo pipefail
cd "$(dirname "$0")/.."

out=${1:-dist}
host=$(rustc -vV | sed -n 's/^host: //p')
others=({aarch64,x86_64}-apple-darwin aarch64-unknown-linux-gnu x86_64-unknown-linux-{gnu,musl})
version=$(cargo pkgid | sed 's/.*[#@]//')
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

rm -rf "$out"
mkdir -p "$out"
stage=$CARGO_TARGET_DIR/stage
rm -rf "$stage"

# pack TARGET BINARIES: the archive of a system, with the binaries of this directory.
pack() {
    local name=oxundo-$version-$1
    mkdir -p "$stage/$name/man"
    cp "$2"/{oxundo,git-oxundo} README.md CHANGELOG.md LICENSE "$stage/$name"
    cp man/*.[17] "$stage/$name/man"
    cp -r completions "$stage/$name"
    chmod -R u=rwX,go=rX "$stage/$name"
    tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu \
        -C "$stage" -c "$name" | gzip -9n >"$out/$name.tar.gz"
}

# Why this target cannot be built here; nothing when it can.
obstacle() {
    if ! command -v cargo-zigbuild >/dev/null; then
        echo "no cross linker: cargo-zigbuild is not installed"
    elif ! { [[ -n ${CARGO_ZIGBUILD_ZIG_PATH:-} ]] || command -v zig || python3 -m ziglang version; } >/dev/null 2>&1; then
        echo "no cross linker: zig is not installed"
    elif ! rustup target add "$1" >/dev/null 2>&1; then
        echo "'rustup target add $1' failed"
    fi
}

cargo build --locked --release
pack "$host" "$CARGO_TARGET_DIR/release"
cargo deb --no-build --no-strip --output "$out/"
cargo generate-rpm --target-dir "$CARGO_TARGET_DIR" --output "$out/"

left_out=()
for target in "${others[@]}"; do
    [[ $target != "$host" ]] || continue
    why=$(obstacle "$target")
    if [[ -n $why ]]; then
        left_out+=("$target: $why")
        continue
    fi
    # Any glibc that a git of this age comes with will do.
    cargo zigbuild --locked --release --target "${target/%-linux-gnu/-linux-gnu.2.31}"
    pack "$target" "$CARGO_TARGET_DIR/$target/release"
done

(cd "$out" && sha256sum -- * >SHA256SUMS && sha256sum --check SHA256SUMS)
for one in "${left_out[@]}"; do
    echo "left out $one" >&2
done
