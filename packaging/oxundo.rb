# A Homebrew formula that builds oxundo from its sources. It is in no tap yet: from a clone, as it stands there,
#
#     brew install --HEAD ./packaging/oxundo.rb
class Oxundo < Formula
  desc "Undo and redo for any coding agent: git-native, exact, and nothing is ever lost"
  license "MIT"
  head "file://#{File.expand_path("..", __dir__)}", using: :git, branch: "main"

  depends_on "rust" => :build
  depends_on "git"

  def install
    system "cargo", "install", *std_cargo_args
    man1.install Dir["man/*.1"]
    man7.install Dir["man/*.7"]
    bash_completion.install "completions/oxundo.bash" => "oxundo"
    zsh_completion.install "completions/oxundo.zsh" => "_oxundo"
    fish_completion.install "completions/oxundo.fish"
  end

  test do
    system "git", "init", "-q"
    system "git", "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "first"
    system bin/"oxundo", "run", "--ghost", "--", "sh", "-c", "echo hello >hello.txt"
    system bin/"oxundo", "undo"
    refute_path_exists testpath/"hello.txt"
  end
end
