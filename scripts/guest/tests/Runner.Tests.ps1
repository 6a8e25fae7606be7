BeforeDiscovery { $skip = -not (Test-Path (Join-Path ($env:WBOX_WINDOWS_TOOLS ?? "$PSScriptRoot/../../../../shared/tools") 'New-WindowsStub.ps1')) }

Describe 'Invoke-WboxScript.ps1' -Skip:$skip {
    BeforeAll {
        . "$PSScriptRoot/Guest.ps1"
        $c = Join-Path $TestDrive 'c'
        New-DriveC $c
        $seed = Join-Path $TestDrive 'seed'
        New-Item -ItemType Directory "$seed/wbox" | Out-Null
        Copy-Item "$guestFolder/Wbox.psm1", "$guestFolder/Invoke-WboxScript.ps1" "$seed/wbox"
        Set-Content "$seed/wbox/parameters.json" '{"11-try-this": {"answer": 42}}'
        Set-Content "$seed/wbox/11-try-this.ps1" @'
function Test-State($Context) {
    'noise'
    New-WboxResult -Missing "answer is $(Get-WboxParameter $Context.Parameters 'answer')" -Facts @{ seed = $Context.SeedRoot }
}
function Set-State($Context) {
    if ((Get-WboxParameter $Context.Parameters 'answer') -eq 42) { return New-WboxResult -Reboot }
}
'@
        Set-Content "$seed/wbox/12-break.ps1" "function Test-State(`$Context) { }`nfunction Set-State(`$Context) {`n    Get-WboxParameter `$null 'password'`n}"
        # In a process of its own, as the host does, with drive C: made first.
        $pwsh = (Get-Process -Id $PID).Path
        $start = if ((Split-Path -Leaf $pwsh) -eq 'dotnet') { @($pwsh, (Join-Path $PSHOME 'pwsh.dll')) } else { @($pwsh) }
        function Invoke-Runner([string]$Name, [string]$Mode) {
            $command = "New-PSDrive -Name C -PSProvider FileSystem -Root '$c' -Scope Global | Out-Null; & '$seed/wbox/Invoke-WboxScript.ps1' -Name $Name -Mode $Mode; `$LASTEXITCODE"
            $rest = @($start | Select-Object -Skip 1) + '-NoProfile', '-NonInteractive', '-Command', $command
            $lines = @(& $start[0] @rest)
            # Printed, not passed on: Linux cuts exit codes to a byte.
            @{ code = [int]$lines[-1]; result = ($lines[-2] | ConvertFrom-Json) }
        }
    }

    It 'ends with the result line of a test' {
        $r = Invoke-Runner '11-try-this' test
        $r.code | Should -Be 0
        $r.result.script | Should -Be '11-try-this'
        $r.result.mode | Should -Be 'test'
        $r.result.state | Should -Be 'absent'
        $r.result.reboot | Should -BeFalse
        $r.result.message | Should -Be 'answer is 42'
        $r.result.facts.seed | Should -Be $seed
        Get-Content "$c/ProgramData/wbox/logs/11-try-this.log" -Raw | Should -Match 'transcript'
    }
    It 'exits with 3010 when set needs a reboot' {
        $r = Invoke-Runner '11-try-this' set
        $r.code | Should -Be 3010
        $r.result.reboot | Should -BeTrue
        $r.result.state | Should -Be 'absent'
    }
    It 'says what failed and where' {
        $r = Invoke-Runner '12-break' set
        $r.code | Should -Be 1
        $r.result.state | Should -Be 'failed'
        $r.result.message | Should -BeLike "*lacks 'password'*12-break.ps1: line 3*"
    }
    It 'takes a test without a result for a failure' {
        (Invoke-Runner '12-break' test).result.state | Should -Be 'failed'
    }
    It 'fails with a result line where the script is not there' {
        $r = Invoke-Runner '13-nothing' test
        $r.code | Should -Be 1
        $r.result.state | Should -Be 'failed'
    }
}
