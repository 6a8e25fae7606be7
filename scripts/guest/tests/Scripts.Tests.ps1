BeforeDiscovery { $skip = -not (Test-Path (Join-Path ($env:WBOX_WINDOWS_TOOLS ?? "$PSScriptRoot/../../../../shared/tools") 'New-WindowsStub.ps1')) }

Describe '00-test-ready' -Skip:$skip {
    BeforeAll {
        . "$PSScriptRoot/Guest.ps1"
        . "$guestFolder/00-test-ready.ps1"
        $setup = 'HKLM:\SOFTWARE\Microsoft\Windows\CurrentVersion\Setup\State|ImageState'
    }
    BeforeEach {
        Set-FakeRegistry @{ $setup = 'IMAGE_STATE_COMPLETE' }
        Mock Get-WboxPendingReboot { }
        Mock Get-Process { }
        Mock Get-Service { [pscustomobject]@{ Status = 'Running' } }
        Mock Get-CimInstance { [pscustomobject]@{ LastBootUpTime = (Get-Date).AddMinutes(-1) } }
        Mock Get-ScheduledTask { }
    }
    It 'is present on a quiet Windows' {
        $r = Test-State (New-Context @{ services = @('WinRM', 'containerd') })
        $r.Message | Should -Be ''
        $r.State | Should -Be 'present'
        Should -Invoke Get-Service -Times 1 -ParameterFilter { $Name -eq 'containerd' }
    }
    It 'tolerates files to rename, and says how many' {
        $script:registry['HKLM:\SYSTEM\CurrentControlSet\Control\Session Manager|PendingFileRenameOperations'] = @('\??\C:\a', '', '\??\C:\b', '')
        $r = Test-State (New-Context)
        $r.State | Should -Be 'present'
        $r.Facts.pendingFileRenames | Should -Be 2
    }
    It 'is absent while something is at work: <what>' -ForEach @(
        @{ what = 'RebootPending'; arrange = { Mock Get-WboxPendingReboot { 'servicing: RebootPending' } } }
        @{ what = 'TiWorker'; arrange = { Mock Get-Process { 1 } } }
        @{ what = 'OOBE'; arrange = { $script:registry[$setup] = 'IMAGE_STATE_SPECIALIZE_RESEAL_TO_OOBE' } }
        @{ what = 'StartPending'; arrange = { Mock Get-Service { [pscustomobject]@{ Status = 'StartPending' } } } }
        @{ what = 'there is no service'; arrange = { Mock Get-Service { } } }
        @{ what = 'being copied'; arrange = { Mock Get-ScheduledTask { [pscustomobject]@{ State = 'Running' } } } }
        @{ what = 'has not run'; arrange = { Mock Get-ScheduledTask { [pscustomobject]@{ State = 'Ready' } }; Mock Get-ScheduledTaskInfo { [pscustomobject]@{ LastRunTime = $null } } } }
    ) {
        . $arrange
        $r = Test-State (New-Context)
        $r.State | Should -Be 'absent'
        $r.Message | Should -BeLike "*$what*"
    }
}

Describe '20-install-features' -Skip:$skip {
    BeforeAll {
        . "$PSScriptRoot/Guest.ps1"
        . "$guestFolder/20-install-features.ps1"
        $context = New-Context @{ features = @('Containers'); dism = @('Microsoft-Hyper-V'); disableDism = @('Microsoft-Hyper-V-Online') }
    }
    BeforeEach {
        $script:state = @{ 'Containers' = 'Available'; 'Microsoft-Hyper-V' = 'Disabled'; 'Microsoft-Hyper-V-Online' = 'Enabled' }
        Mock Get-WindowsFeature { if ($Name) { [pscustomobject]@{ Name = "$Name"; InstallState = $script:state["$Name"]; Installed = $true } } }
        Mock Get-WindowsOptionalFeature { [pscustomobject]@{ State = $script:state["$FeatureName"] } }
        Mock Get-WboxPendingReboot { }
        Mock Install-WindowsFeature { [pscustomobject]@{ Success = $true; RestartNeeded = 'No'; ExitCode = 'Success' } }
        Mock Invoke-WboxProgram { [pscustomobject]@{ ExitCode = 0; Output = ''; Error = '' } }
    }
    It 'names what is missing' {
        (Test-State $context).Message | Should -Be 'Containers is Available; Microsoft-Hyper-V is Disabled; Microsoft-Hyper-V-Online is Enabled'
    }
    It 'installs, enables and disables in one go, accepting 3010 of dism.exe' {
        (Set-State $context).Reboot | Should -BeFalse
        Should -Invoke Install-WindowsFeature -Times 1 -Exactly -ParameterFilter { "$Name" -eq 'Containers' }
        Should -Invoke Invoke-WboxProgram -Times 1 -Exactly -ParameterFilter { "$ArgumentList" -eq '/Online /NoRestart /Quiet /Enable-Feature /FeatureName:Microsoft-Hyper-V /All' -and $AcceptExitCode -contains 3010 }
        Should -Invoke Invoke-WboxProgram -Times 1 -Exactly -ParameterFilter { "$ArgumentList" -eq '/Online /NoRestart /Quiet /Disable-Feature /FeatureName:Microsoft-Hyper-V-Online' }
    }
    It 'disables what enabling another feature has brought along' {
        $script:state['Microsoft-Hyper-V-Online'] = 'Disabled'
        Mock Invoke-WboxProgram {
            if ($ArgumentList -contains '/Enable-Feature') { $script:state['Microsoft-Hyper-V-Online'] = 'EnablePending' }
            [pscustomobject]@{ ExitCode = 3010; Output = ''; Error = '' }
        }
        Set-State $context | Out-Null
        Should -Invoke Invoke-WboxProgram -Times 1 -Exactly -ParameterFilter { "$ArgumentList" -like '*/Disable-Feature /FeatureName:Microsoft-Hyper-V-Online' }
    }
    It 'asks for a reboot when Install-WindowsFeature does' {
        Mock Install-WindowsFeature { [pscustomobject]@{ Success = $true; RestartNeeded = 'Yes'; ExitCode = 'SuccessRestartRequired' } }
        (Set-State $context).Reboot | Should -BeTrue
    }
    It 'asks for a reboot when dism.exe does' {
        Mock Invoke-WboxProgram { [pscustomobject]@{ ExitCode = 3010; Output = ''; Error = '' } }
        (Set-State $context).Reboot | Should -BeTrue
    }
    It 'fails when Install-WindowsFeature does' {
        Mock Install-WindowsFeature { [pscustomobject]@{ Success = $false; RestartNeeded = 'Maybe'; ExitCode = 'Failed' } }
        { Set-State $context } | Should -Throw '*Containers failed (Failed)'
    }
    It 'fails for a feature that Windows does not have' {
        Mock Get-WindowsFeature { }
        { Test-State $context } | Should -Throw '*no feature named Containers'
    }
    It 'installs nothing twice, and waits for the reboot' {
        $script:state = @{ 'Containers' = 'InstallPending'; 'Microsoft-Hyper-V' = 'EnablePending'; 'Microsoft-Hyper-V-Online' = 'DisablePending' }
        $r = Test-State $context
        $r.State | Should -Be 'absent'
        $r.Reboot | Should -BeTrue
        (Set-State $context).Reboot | Should -BeTrue
        Should -Invoke Install-WindowsFeature -Times 0
        Should -Invoke Invoke-WboxProgram -Times 0
    }
    It 'is present after it, and not while a reboot is pending' {
        $script:state = @{ 'Containers' = 'Installed'; 'Microsoft-Hyper-V' = 'Enabled'; 'Microsoft-Hyper-V-Online' = 'Disabled' }
        (Test-State $context).State | Should -Be 'present'
        Mock Get-WboxPendingReboot { 'servicing: RebootPending' }
        (Test-State $context).State | Should -Be 'absent'
    }
}

Describe '30-install-runtime' -Skip:$skip {
    BeforeAll {
        . "$PSScriptRoot/Guest.ps1"
        . "$guestFolder/30-install-runtime.ps1"
        $parameters = @{ configVersion = 3; sandboxImage = 'example.org/pause:3.10.2'; binDirs = @('C:/opt/cni/bin', 'C:\more\bin'); confDir = 'C:/etc/cni/net.d' }
    }
    It 'renders version 3 as in <_>' -ForEach 'config-v3.toml' {
        Get-ConfigText (New-Context $parameters) | Should -BeExactly ([IO.File]::ReadAllText("$PSScriptRoot/testdata/$_"))
    }
    It 'renders version 2 as in <_>' -ForEach 'config-v2.toml' {
        Get-ConfigText (New-Context ($parameters + @{} | ForEach-Object { $_.configVersion = 2; $_.binDirs = @('C:/opt/cni/bin'); $_ })) | Should -BeExactly ([IO.File]::ReadAllText("$PSScriptRoot/testdata/$_"))
    }
    It 'refuses what TOML or the version can not hold' {
        { Get-ConfigText (New-Context @{ sandboxImage = "a'b" }) } | Should -Throw "*can't hold*"
        { Get-ConfigText (New-Context @{ sandboxImage = 'a'; configVersion = 4 }) } | Should -Throw '*configVersion is 4*'
    }
    It 'goes on where Defender does not answer' {
        Mock Get-MpPreference { throw '0x800106ba' }
        @(Get-MissingExclusion).Count | Should -Be 0
        Mock Get-MpPreference { [pscustomobject]@{ ExclusionProcess = @('C:\Program Files\containerd\ctr.exe') } }
        @(Get-MissingExclusion) | Should -Be 'C:\Program Files\containerd\containerd.exe'
    }
}

Describe '32-preload-images' -Skip:$skip {
    BeforeAll {
        . "$PSScriptRoot/Guest.ps1"
        New-DriveC (Join-Path $TestDrive 'c')
        . "$guestFolder/32-preload-images.ps1"
        New-WboxFolder 'C:\Program Files\containerd', 'C:\seed\payload\images'
        Set-Content -LiteralPath 'C:\Program Files\containerd\ctr.exe', 'C:\seed\payload\images\pause.tar', 'C:\seed\payload\images\node.tar' -Value 'x'
        $pause = @{ name = 'registry.k8s.io/pause:3.10.2'; digest = "sha256:$('a' * 64)"; file = 'pause.tar' }
        $node = @{ name = 'docker.io/calico/node:v3.32.0'; digest = "sha256:$('b' * 64)"; file = 'node.tar' }
        $context = New-Context @{ images = @($pause, $node); pinned = @($pause.name) }
        # What ctr prints, and what it is asked for.
        Mock Invoke-WboxProgram {
            $line = $ArgumentList -join ' '
            $script:asked += $line
            if ($line -like '*images import*pause.tar') { $script:there[$pause.name] = $pause.digest }
            if ($line -like '*images import*node.tar') { $script:there[$node.name] = $node.digest }
            if ($line -like '*images label*') { $script:labels = ',io.cri-containerd.pinned=pinned' }
            $output = "REF                          TYPE                                     DIGEST  SIZE  PLATFORMS     LABELS`n"
            foreach ($name in $script:there.Keys) { $output += "$name application/vnd.oci.image.manifest.v1+json $($script:there[$name]) 1.2 MiB windows/amd64 io.cri-containerd.image=managed$($script:labels)`n" }
            [pscustomobject]@{ ExitCode = 0; Output = $output; Error = '' }
        }
    }
    BeforeEach { $script:asked = @(); $script:there = @{}; $script:labels = '' }
    It 'says what is missing, imports it and is content' {
        (Test-State $context).Message | Should -BeExactly "there is no image $($pause.name); there is no image $($node.name)"
        Set-State $context
        @($script:asked | Where-Object { $_ -like '--namespace k8s.io images import*' }) | Should -HaveCount 2
        $r = Test-State $context
        $r.Message | Should -BeExactly ''
        $r.Facts.images[0] | Should -BeExactly "$($pause.name) $($pause.digest)"
    }
    It 'imports only what is not there with its digest, without unpacking on request' {
        $script:there[$pause.name] = $pause.digest
        $script:there[$node.name] = "sha256:$('c' * 64)"
        (Test-State $context).Message | Should -BeExactly "the image $($pause.name) is not pinned; the image $($node.name) is sha256:$('c' * 64), not $($node.digest)"
        Set-State (New-Context @{ images = @($pause, $node); unpack = $false })
        @($script:asked | Where-Object { $_ -like '*import*' }) | Should -BeLike '*images import --no-unpack C:?seed?payload?images?node.tar'
    }
    It 'has nothing to do without images' {
        (Test-State (New-Context)).State | Should -Be 'present'
        Set-State (New-Context)
        $script:asked | Should -HaveCount 0
    }
    It 'fails for an archive that is not there, or lies elsewhere' {
        $lost = $node.Clone(); $lost.file = 'lost.tar'
        { Set-State (New-Context @{ images = @($lost) }) } | Should -Throw '*lost.tar*'
        $lost.file = '..\..\x.tar'
        { Set-State (New-Context @{ images = @($lost) }) } | Should -Throw '*is none*'
    }
    It 'fails where containerd does not answer' {
        Mock Wait-Wbox { $false }
        { Set-State $context } | Should -Throw '*does not answer*'
    }
}

Describe '40-prepare-cni' -Skip:$skip {
    BeforeAll {
        . "$PSScriptRoot/Guest.ps1"
        . "$guestFolder/40-prepare-cni.ps1"
    }
    It '<cni> opens <ports>' -ForEach @(
        @{ cni = 'none'; ports = '' }, @{ cni = 'calico'; ports = 'UDP 4789' }, @{ cni = 'flannel'; ports = 'UDP 4789' }, @{ cni = 'antrea'; ports = 'UDP 6081' }
    ) { (@(Get-Rules (New-Context @{ cni = $cni })) | ForEach-Object { "$($_.Protocol) $($_.Port)" }) -join ',' | Should -Be $ports }
    It 'opens BGP on request' { (Get-Rules (New-Context @{ cni = 'calico'; bgp = $true })).Port | Should -Be 179 }
    It 'refuses an unknown CNI' { { Get-Rules (New-Context @{ cni = 'weave' }) } | Should -Throw '*weave*' }

    Context 'with programs' {
        BeforeAll {
            New-DriveC (Join-Path $TestDrive 'c')
            New-WboxFolder 'C:\seed\payload\cni'
            'antrea-agent.exe', 'antrea-cni.exe', 'host-local.exe' | ForEach-Object { Set-Content -LiteralPath "C:\seed\payload\cni\$_" -Value $_ }
            $places = @(
                @{ file = 'antrea-agent.exe'; to = @('C:\k\antrea\bin\antrea-agent.exe') }
                @{ file = 'antrea-cni.exe'; to = @('C:\opt\cni\bin\antrea.exe', 'C:\more\antrea.exe') }
                @{ file = 'antctl.exe'; to = @('C:\k\antrea\bin\antctl.exe') }
            )
            $parameters = @{ cni = 'antrea'; places = $places; needed = @('antrea-agent.exe', 'antrea-cni.exe') }
            Mock Test-WboxFirewallRule { $true }
            Mock Set-WboxFirewallRule { }
        }
        It 'puts each where it belongs' {
            $context = New-Context $parameters
            (Test-State $context).State | Should -Be 'absent'
            Set-State $context
            (Test-State $context).Message | Should -BeExactly ''
            foreach ($to in 'C:\k\antrea\bin\antrea-agent.exe', 'C:\opt\cni\bin\antrea.exe', 'C:\more\antrea.exe', 'C:\opt\cni\bin\host-local.exe') { Test-Path -LiteralPath $to | Should -BeTrue -Because $to }
            Test-Path -LiteralPath 'C:\opt\cni\bin\antrea-cni.exe' | Should -BeFalse
            Test-Path -LiteralPath 'C:\k\antrea\bin\antctl.exe' | Should -BeFalse
        }
        It 'sees a program that is another one' {
            Set-State (New-Context $parameters)
            Set-Content -LiteralPath 'C:\opt\cni\bin\antrea.exe' -Value 'other'
            (Test-State (New-Context $parameters)).Message | Should -BeExactly 'C:\opt\cni\bin\antrea.exe is not the one of the seed'
        }
        It 'misses what is needed, without a payload too' {
            $context = New-Context $parameters -Payload 'C:\none'
            $result = Test-State $context
            $result.State | Should -Be 'present'
            $result.Facts.programs | Should -HaveCount 3
            Remove-Item -LiteralPath 'C:\k\antrea\bin\antrea-agent.exe'
            (Test-State $context).Message | Should -BeExactly 'there is no C:\k\antrea\bin\antrea-agent.exe'
        }
    }
}

Describe '99-prove-payload' -Skip:$skip {
    BeforeAll {
        . "$PSScriptRoot/Guest.ps1"
        New-DriveC (Join-Path $TestDrive 'c')
        . "$guestFolder/99-prove-payload.ps1"
        # A PE header of a machine, and nothing more.
        function New-Program([string]$Path, [int]$Machine) {
            $bytes = New-Object byte[] 200
            $bytes[0] = 0x4D; $bytes[1] = 0x5A; $bytes[0x3C] = 0x80; $bytes[0x80] = 0x50; $bytes[0x81] = 0x45
            $bytes[0x84] = $Machine -band 0xFF; $bytes[0x85] = $Machine -shr 8
            New-WboxFolder (Split-Path -Parent $Path)
            [IO.File]::WriteAllBytes((Resolve-WboxPath $Path), $bytes)
            [pscustomobject]@{ name = (Split-Path -Leaf $Path); sha256 = (Get-WboxDigest $Path); size = 200 }
        }
        $file = New-Program 'C:\k\kubelet.exe' 0x8664
    }
    It 'is content with the right program' { Test-PayloadFile $file | Should -BeNullOrEmpty }
    It 'finds <what>' -ForEach @(
        @{ what = 'there is no'; change = @{ name = 'x.exe' } }
        @{ what = 'SHA-256'; change = @{ sha256 = '0' * 64 } }
        @{ what = 'bytes instead of 201'; change = @{ size = 201 } }
    ) {
        $other = $file | Select-Object *
        foreach ($k in $change.Keys) { $other.$k = $change[$k] }
        Test-PayloadFile $other | Should -BeLike "*$what*"
    }
    It 'finds a program for another machine' {
        Test-PayloadFile (New-Program 'C:\k\arm.exe' 0xAA64) | Should -BeLike '*machine 0xaa64'
    }
    It 'finds a file that is no program' {
        [IO.File]::WriteAllText((Resolve-WboxPath 'C:\k\text.exe'), 'x' * 200)
        Get-Machine 'C:\k\text.exe' | Should -Be 'no program for Windows'
    }
}

Describe 'Update-WboxKubeletService' -Skip:$skip {
    BeforeAll {
        . "$PSScriptRoot/Guest.ps1"
        New-DriveC (Join-Path $TestDrive 'c')
        Write-WboxTextFile 'C:\var\lib\kubelet\kubeadm-flags.env' 'KUBELET_KUBEADM_ARGS="--pod-infra-container-image=p:1 --node-ip=10.0.0.1"' | Out-Null
        New-WboxFolder 'C:\ProgramData\wbox'
        Copy-Item "$guestFolder/Wbox.psm1" 'C:\ProgramData\wbox\Wbox.psm1'
        # The script imports the module anew: its calls end in Start-Process.
        function global:Start-Process { $global:started = $args -join ' '; [pscustomobject]@{ ExitCode = 0 } }
    }
    AfterAll {
        Remove-Item 'function:\Start-Process'
        Get-Module Wbox | Remove-Module -Force
    }
    It 'of 1.<minor> gives kubelet the flags of kubeadm: <want>' -ForEach @(
        @{ minor = 34; want = '--hostname-override=node1 --pod-infra-container-image=p:1 --node-ip=10.0.0.1' }
        @{ minor = 35; want = '--hostname-override=node1 --node-ip=10.0.0.1' }
    ) {
        Write-WboxTextFile 'C:\ProgramData\wbox\kubelet.json' "{`"minor`": $minor, `"arguments`": [`"--windows-service`"]}" | Out-Null
        & "$guestFolder/Update-WboxKubeletService.ps1" -NodeName 'NODE1' -NoRestart | Should -BeExactly "C:\k\kube-log-runner.exe --log-file=C:/var/log/kubelet/kubelet.log C:\k\kubelet.exe --windows-service $want"
        $global:started | Should -BeLike "*config kubelet binPath=*$want*"
    }
}

Describe 'Set-WboxNetwork' -Skip:$skip {
    BeforeAll {
        . "$PSScriptRoot/Guest.ps1"
        New-DriveC (Join-Path $TestDrive 'c')
        New-WboxFolder 'C:\ProgramData\wbox'
        Copy-Item "$guestFolder/Wbox.psm1" 'C:\ProgramData\wbox\Wbox.psm1'
        # The script imports the module anew: what reaches Windows is replaced below it.
        function global:Start-Process { $global:started += , ($args -join ' '); [pscustomobject]@{ ExitCode = 0 } }
        function global:New-ItemProperty { param($LiteralPath, $Name, $Value, $PropertyType, [switch]$Force) $global:service[$Name] = $Value }
        function global:Get-ItemProperty { param($LiteralPath, $Name) if ($global:service.ContainsKey($Name)) { [pscustomobject]@{ $Name = $global:service[$Name] } } }
        function global:Remove-ItemProperty { param($LiteralPath, $Name, [switch]$Force) $global:service.Remove($Name) }
        function global:Test-Path { param($LiteralPath, $PathType = 'Any') if ("$LiteralPath" -like 'HKLM:*') { $true } else { Microsoft.PowerShell.Management\Test-Path -LiteralPath $LiteralPath -PathType $PathType } }
        function global:Get-Service { param($Name) if ($global:there) { [pscustomobject]@{ Status = 'Running' } } }
        function global:Restart-Service { param($Name, [switch]$Force) $global:started += , "restart $Name" }
        function Set-Network($Settings) {
            $global:started = @()
            Write-WboxTextFile 'C:\ProgramData\wbox\wbox-network.json' (ConvertTo-Json $Settings -Depth 5) | Out-Null
            & "$guestFolder/Set-WboxNetwork.ps1" -Remove
        }
        $none = @{ schema = 1; certs = @(); authorities = @(); environment = @{}; winHTTPProxy = ''; winHTTPSkip = @() }
        $full = @{
            schema = 1; authorities = @(); winHTTPProxy = 'proxy.lan:3128'; winHTTPSkip = @('<local>', '10.*')
            environment = @{ NO_PROXY = '.lan'; HTTPS_PROXY = 'http://me:sesame@proxy.lan:3128' }
            certs = @(@{ path = 'docker.io/hosts.toml'; text = "server = 1`n" }, @{ path = 'registry.lan_5000_/ca.crt'; text = "pem`n" })
        }
    }
    BeforeEach { $global:service = @{}; $global:there = $true }
    AfterAll {
        'Start-Process', 'New-ItemProperty', 'Get-ItemProperty', 'Remove-ItemProperty', 'Test-Path', 'Get-Service', 'Restart-Service' | ForEach-Object { Remove-Item "function:\$_" }
        Get-Module Wbox | Remove-Module -Force
    }
    It 'sets all of it up, once, and keeps no secret' {
        Set-Network $full | Should -BeExactly 'registries: 1, authorities: 0, proxy: yes'
        Read-WboxTextFile 'C:\etc\containerd\certs.d\docker.io\hosts.toml' | Should -BeExactly "server = 1`n"
        $global:service.Environment | Should -BeExactly @('HTTPS_PROXY=http://me:sesame@proxy.lan:3128', 'NO_PROXY=.lan')
        $global:started | Should -HaveCount 2
        $global:started[0] | Should -BeLike '*winhttp set proxy proxy-server=proxy.lan:3128 bypass-list=<local>;10.* -Wait*'
        $global:started[1] | Should -BeExactly 'restart containerd'
        Read-WboxTextFile 'C:\ProgramData\wbox\network-state.json' | Should -Not -BeLike '*sesame*'
        Microsoft.PowerShell.Management\Test-Path 'C:\ProgramData\wbox\wbox-network.json' | Should -BeFalse
        Set-Network $full | Out-Null
        @($global:started | Where-Object { $_ -like 'restart*' }) | Should -HaveCount 0
    }
    It 'takes away what an earlier file set up, and nothing else' {
        Set-Network $full | Out-Null
        Write-WboxTextFile 'C:\etc\containerd\certs.d\own.lan\hosts.toml' 'mine' | Out-Null
        Set-Network $none | Should -BeExactly 'registries: 0, authorities: 0, proxy: no'
        @(Get-ChildItem 'C:\etc\containerd\certs.d' | ForEach-Object { $_.Name }) | Should -BeExactly 'own.lan'
        $global:service.ContainsKey('Environment') | Should -BeFalse
        $global:started[0] | Should -BeLike '*winhttp reset proxy *'
    }
    It 'leaves the environment alone that it has not set' {
        $global:service.Environment = @('A=B')
        Set-Network $none | Out-Null
        $global:service.Environment | Should -BeExactly @('A=B')
        $global:started | Should -HaveCount 0
    }
    It 'trusts authorities, and no longer those that are gone' {
        $global:root = New-Object Collections.ArrayList
        function global:New-Object {
            param($TypeName, $ArgumentList)
            if ($TypeName -notlike '*X509Store') { return Microsoft.PowerShell.Utility\New-Object -TypeName $TypeName -ArgumentList $ArgumentList }
            $store = [pscustomobject]@{ Certificates = $global:root }
            $store | Add-Member ScriptMethod Open { }
            $store | Add-Member ScriptMethod Close { }
            $store | Add-Member ScriptMethod Add { param($c) if (@($global:root | ForEach-Object { $_.Thumbprint }) -notcontains $c.Thumbprint) { [void]$global:root.Add($c) } }
            $store | Add-Member ScriptMethod Remove { param($c) $global:root.Remove($c) }
            $store
        }
        try {
            $settings = $none.Clone()
            $settings.authorities = @([IO.File]::ReadAllText("$PSScriptRoot/testdata/authority.pem"))
            Set-Network $settings | Should -BeExactly 'registries: 0, authorities: 1, proxy: no'
            Set-Network $settings | Out-Null
            @($global:root | ForEach-Object { $_.Subject }) | Should -BeExactly 'CN=wbox test authority'
            Set-Network $none | Out-Null
            $global:root.Count | Should -Be 0
            $global:started | Should -Contain 'restart containerd'
        }
        finally { Remove-Item 'function:\New-Object' }
    }
    It 'works without containerd' {
        $global:there = $false
        Set-Network $full | Out-Null
        $global:service.Count | Should -Be 0
    }
    It 'refuses <what>' -ForEach @(
        @{ what = 'another form'; change = @{ schema = 2 }; want = '*not of a form*' }
        @{ what = 'a file elsewhere'; change = @{ certs = @(@{ path = '../../k/hosts.toml'; text = 'x' }) }; want = '*none of containerd*' }
        @{ what = 'another file'; change = @{ certs = @(@{ path = 'a/run.ps1'; text = 'x' }) }; want = '*none of containerd*' }
    ) {
        $settings = $none.Clone()
        foreach ($key in $change.Keys) { $settings[$key] = $change[$key] }
        { Set-Network $settings } | Should -Throw $want
    }
}
