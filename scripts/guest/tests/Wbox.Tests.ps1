BeforeDiscovery { $skip = -not (Test-Path (Join-Path ($env:WBOX_WINDOWS_TOOLS ?? "$PSScriptRoot/../../../../shared/tools") 'New-WindowsStub.ps1')) }

Describe 'Wbox.psm1' -Skip:$skip {
    BeforeAll {
        . "$PSScriptRoot/Guest.ps1"
        New-DriveC (Join-Path $TestDrive 'c')
    }

    It 'joins arguments as CommandLineToArgvW splits them: <line>' -ForEach @(
        @{ list = @('a', 'b'); line = 'a b' }
        @{ list = @('a b', ''); line = '"a b" ""' }
        @{ list = @('say "hi"'); line = '"say \"hi\""' }
        @{ list = @('C:\a b\'); line = '"C:\a b\\"' }
        @{ list = @('a\"b'); line = '"a\\\"b"' }
        @{ list = @('C:\k\x.exe --n="" '); line = '"C:\k\x.exe --n=\"\" "' }
        @{ list = @('binPath=', 'C:\k\a.exe b'); line = 'binPath= "C:\k\a.exe b"' }
    ) { ConvertTo-WboxCommandLine $list | Should -BeExactly $line }

    # Here Start-Process reads a program's output beside waiting for its end, where Windows hands it the file:
    # a program that ends at once may be overtaken.
    It 'runs a program and returns what it said' {
        $r = Invoke-WboxProgram -Path '/bin/sh' -ArgumentList '-c', 'echo out; echo err >&2; sleep 0.5; exit 3' -AcceptExitCode 0, 3
        $r.ExitCode | Should -Be 3
        $r.Output.Trim() | Should -Be 'out'
        $r.Error.Trim() | Should -Be 'err'
        Get-ChildItem 'C:\ProgramData\wbox\tmp' | Should -BeNullOrEmpty
    }

    It 'names program, arguments, exit code and last words of a program that failed' {
        { Invoke-WboxProgram -Path '/bin/sh' -ArgumentList '-c', 'echo no such thing >&2; sleep 0.5; exit 5' } |
            Should -Throw '*/bin/sh -c *exit code 5: no such thing'
    }

    It 'writes files without a byte order mark, and only when they change' {
        Write-WboxTextFile 'C:\a\b.txt' "x`n" | Should -BeTrue
        Write-WboxTextFile 'C:\a\b.txt' "x`n" | Should -BeFalse
        [IO.File]::ReadAllBytes((Join-Path $TestDrive 'c/a/b.txt')) | Should -Be @(120, 10)
        (Get-ChildItem 'C:\a').Name | Should -Be 'b.txt'
    }

    It 'copies no file that has the wrong digest' {
        Write-WboxTextFile 'C:\s.txt' 'new' | Out-Null
        Write-WboxTextFile 'C:\d.txt' 'old' | Out-Null
        { Copy-WboxFile -Source 'C:\s.txt' -Destination 'C:\d.txt' -Sha256 ('0' * 64) } | Should -Throw '*SHA-256*'
        Read-WboxTextFile 'C:\d.txt' | Should -Be 'old'
        Copy-WboxFile -Source 'C:\s.txt' -Destination 'C:\d.txt' | Should -BeTrue
        Copy-WboxFile -Source 'C:\s.txt' -Destination 'C:\d.txt' | Should -BeFalse
        Read-WboxTextFile 'C:\d.txt' | Should -Be 'new'
    }

    It 'makes a copy of a read-only file that can be replaced' {
        Write-WboxTextFile 'C:\ro.txt' '1' | Out-Null
        (Get-Item 'C:\ro.txt').IsReadOnly = $true
        Copy-WboxFile -Source 'C:\ro.txt' -Destination 'C:\rw.txt' | Out-Null
        (Get-Item 'C:\rw.txt').IsReadOnly | Should -BeFalse
    }

    It 'requires a parameter that has no default' {
        { Get-WboxParameter ([pscustomobject]@{ a = 1 }) 'b' } | Should -Throw "*lacks 'b'*"
        Get-WboxParameter ([pscustomobject]@{ a = 1 }) 'b' -Default 7 | Should -Be 7
        Get-WboxParameter ([pscustomobject]@{ a = 0 }) 'a' -Default 7 | Should -Be 0
    }

    It 'reads kubeadm-flags.env: <text>' -ForEach @(
        @{ text = 'KUBELET_KUBEADM_ARGS="--node-ip=10.0.0.1 --v=2"'; want = @('--node-ip=10.0.0.1', '--v=2') }
        # Its first letters are all in the name of the variable: TrimStart would eat them.
        @{ text = "KUBELET_KUBEADM_ARGS=`"ABLE`"`r`n"; want = @('ABLE') }
        @{ text = "# x`nKUBELET_KUBEADM_ARGS=--v=2`n"; want = @('--v=2') }
        @{ text = 'KUBELET_KUBEADM_ARGS=""'; want = @() }
        @{ text = ''; want = @() }
    ) { @(ConvertFrom-WboxKubeadmFlags $text) | Should -Be $want }

    It 'starts kubelet itself as the service, once --windows-service' {
        Get-WboxKubeletCommandLine @('--windows-service', '--v=2') | Should -BeExactly 'C:\k\kube-log-runner.exe --log-file=C:/var/log/kubelet/kubelet.log C:\k\kubelet.exe --windows-service --v=2'
        Get-WboxKubeletCommandLine @('--v=2') | Should -BeExactly 'C:\k\kube-log-runner.exe --log-file=C:/var/log/kubelet/kubelet.log C:\k\kubelet.exe --windows-service --v=2'
    }

    Context 'pending reboots' {
        BeforeAll { Mock -ModuleName Wbox Test-Path { $LiteralPath -like "*\$key" } }
        It '<key> is one: <pending>' -ForEach @(
            @{ key = 'RebootPending'; pending = $true }, @{ key = 'RebootInProgress'; pending = $true }
            @{ key = 'RebootRequired'; pending = $true }, @{ key = 'PendingFileRenameOperations'; pending = $false }
        ) { (@(Get-WboxPendingReboot).Count -gt 0) | Should -Be $pending }
        It 'counts packages' {
            $key = 'PackagesPending'
            Mock -ModuleName Wbox Get-ChildItem { }
            @(Get-WboxPendingReboot).Count | Should -Be 0
            Mock -ModuleName Wbox Get-ChildItem { 'Package_1' }
            @(Get-WboxPendingReboot) | Should -Be 'servicing: PackagesPending'
        }
    }

    Context 'firewall rules' {
        BeforeAll {
            Mock -ModuleName Wbox Get-NetFirewallRule { [pscustomobject]@{ Enabled = 'True'; Profile = $profiles; Action = 'Allow'; Direction = 'Inbound' } }
            Mock -ModuleName Wbox Get-NetFirewallPortFilter { [pscustomobject]@{ Protocol = 'TCP'; LocalPort = '5986' } }
            Mock -ModuleName Wbox Remove-NetFirewallRule { }
            Mock -ModuleName Wbox New-NetFirewallRule { }
        }
        It 'leaves a right rule alone' {
            $profiles = 'Any'
            Set-WboxFirewallRule -Name x -Protocol TCP -Port 5986 -DisplayName X
            Should -Invoke -ModuleName Wbox New-NetFirewallRule -Times 0
        }
        It 'replaces one that is for private networks only' {
            $profiles = 'Private'
            Set-WboxFirewallRule -Name x -Protocol TCP -Port 5986 -DisplayName X
            Should -Invoke -ModuleName Wbox New-NetFirewallRule -Times 1 -ParameterFilter { "$Profile" -eq 'Any' -and "$LocalPort" -eq '5986' }
        }
    }
}
