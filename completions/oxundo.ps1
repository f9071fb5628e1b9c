# Completion of oxundo for PowerShell. 'oxundo completions powershell' prints it.

Register-ArgumentCompleter -Native -CommandName oxundo, git-oxundo -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $words = @($commandAst.CommandElements |
        Where-Object { $_.Extent.StartOffset -lt $cursorPosition } |
        ForEach-Object { $_.ToString() })
    # An empty word at the cursor is no element; oxundo knows it by its place.
    $index = if ($wordToComplete -eq '') { $words.Count } else { $words.Count - 1 }

    oxundo __complete $index @words 2>$null | ForEach-Object {
        $value, $about = $_ -split "`t", 2
        # Without a value, it is PowerShell's own to complete: it does so when nothing is given.
        if ($value) {
            if (-not $about) { $about = $value }
            $text = if ($value -match "[\s'`"``]") { "'" + $value.Replace("'", "''") + "'" } else { $value }
            [System.Management.Automation.CompletionResult]::new($text, $value, 'ParameterValue', $about)
        }
    }
}
