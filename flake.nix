# `nix run . -- log` runs oxundo as it stands here, `nix develop` has what builds and tests it.
{
  description = "Undo and redo for any coding agent, on git";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      for = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
    in {
      packages = for (pkgs: {
        default = pkgs.rustPlatform.buildRustPackage {
          pname = "oxundo";
          version = (nixpkgs.lib.importTOML ./Cargo.toml).package.version;
          src = self;
          cargoLock.lockFile = ./Cargo.lock;
          nativeBuildInputs = [ pkgs.installShellFiles pkgs.makeWrapper ];
          # They need a terminal, other file systems, and some minutes: `nix develop`, then `cargo test`.
          doCheck = false;
          postInstall = ''
            installManPage man/*.1 man/*.7
            installShellCompletion --bash --name oxundo completions/oxundo.bash
            installShellCompletion --zsh --name _oxundo completions/oxundo.zsh
            installShellCompletion --fish completions/oxundo.fish
            wrapProgram $out/bin/oxundo --prefix PATH : ${pkgs.git}/bin
            wrapProgram $out/bin/git-oxundo --prefix PATH : ${pkgs.git}/bin
          '';
          meta.mainProgram = "oxundo";
        };
      });
      devShells = for (pkgs: {
        default = pkgs.mkShell { packages = with pkgs; [ cargo rustc clippy rustfmt git just ]; };
      });
    };
}
