BeforeDiscovery { $skip = -not (Test-Path (Join-Path ($env:WBOX_WINDOWS_TOOLS ?? "$PSScriptRoot/../../../../shared/tools") 'New-WindowsStub.ps1')) }

Describe '14-check-licence' -Skip:$skip {
    BeforeAll {
        . "$PSScriptRoot/Guest.ps1"
        . "$guestFolder/14-check-licence.ps1"
        $ask = New-Context @{ activate = $true }
        $edition = 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion|EditionID'
        function Get-Utc([string]$Text) { [DateTime]::SpecifyKind([DateTime]$Text, 'Utc') }
        $noted = 'HKLM:\SOFTWARE\wbox|Activation'
    }
    BeforeEach {
        Set-FakeRegistry @{ $edition = 'ServerDatacenterEval' }
        $script:product = [pscustomobject]@{
            Description = 'Windows(R) Operating System, TIMEBASED_EVAL channel'; LicenseStatus = 2; GracePeriodRemaining = [uint32]14000
            EvaluationEndDate = (Get-Utc '1601-01-01')
        }
        $script:calls = @()
        Mock Get-CimInstance {
            switch ($ClassName) {
                'Win32_OperatingSystem' { [pscustomobject]@{ InstallDate = (Get-Utc '2026-12-01 16:30') } }
                'SoftwareLicensingProduct' { $script:product }
                'SoftwareLicensingService' { [pscustomobject]@{ Version = '10.0' } }
            }
        }
        Mock Invoke-CimMethod {
            $script:calls += $MethodName
            if ($MethodName -eq 'Activate') { $script:product.LicenseStatus = 1; $script:product.GracePeriodRemaining = 259200 }
        }
        Mock Start-Sleep { }
    }
    It 'only looks where no activation is asked for' {
        $r = Test-State (New-Context)
        $r.State | Should -Be 'present'
        $r.Facts.evaluation | Should -BeTrue
        $r.Facts.licenseStatus | Should -Be 2
        $r.Facts.gracePeriodRemaining | Should -Be 14000
        $r.Facts.installed | Should -Be '2026-12-01T16:30:00.0000000Z'
        $r.Facts.activation | Should -Be ''
        $r.Facts.ContainsKey('evaluationEndDate') | Should -BeFalse
        Set-State (New-Context)
        $script:calls | Should -BeNullOrEmpty
        Should -Invoke Get-CimInstance -ParameterFilter { $Filter -like "*PartialProductKey IS NOT NULL*" }
    }
    It 'activates as slmgr does, and has that in its facts' {
        (Test-State $ask).Message | Should -Be 'the evaluation is not activated'
        Set-State $ask
        $script:calls -join ' ' | Should -Be 'Activate RefreshLicenseStatus'
        $r = Test-State $ask
        $r.State | Should -Be 'present'
        $r.Facts.licenseStatus | Should -Be 1
        $r.Facts.activation | Should -Be 'activated'
        Should -Invoke Start-Sleep -Times 0
        Set-State $ask
        $script:calls.Count | Should -Be 2
    }
    It 'is content after attempts that failed, and says why' {
        Mock Invoke-CimMethod { $script:calls += $MethodName; Write-Error -Message "The server name could not be`r`nresolved." -ErrorId 'HRESULT 0x80072ee7' -ErrorAction Stop }
        Set-State $ask
        $script:calls.Count | Should -Be 3
        Should -Invoke Start-Sleep -Times 2 -Exactly
        $r = Test-State $ask
        $r.State | Should -Be 'present'
        $r.Facts.licenseStatus | Should -Be 2
        $r.Facts.activation | Should -Be 'not activated: The server name could not be resolved. (0x80072ee7)'
    }
    It 'does not take a call without an error for an activation' {
        Mock Invoke-CimMethod { }
        Set-State (New-Context @{ activate = $true; attempts = 1 })
        $script:registry[$noted] | Should -Be 'not activated: LicenseStatus is 2 after it'
    }
    It 'tries again until it works' {
        Mock Invoke-CimMethod {
            $script:calls += $MethodName
            if ($script:calls.Count -eq 1) { throw 'not yet' }
            $script:product.LicenseStatus = 1
        }
        Set-State $ask
        $script:registry[$noted] | Should -Be 'activated'
        Should -Invoke Start-Sleep -Times 1 -Exactly
    }
    It 'leaves a volume edition alone' {
        Set-FakeRegistry @{ $edition = 'ServerDatacenter' }
        $script:product.Description = 'Windows(R) Operating System, VOLUME_KMSCLIENT channel'
        (Test-State $ask).State | Should -Be 'present'
        (Test-State $ask).Facts.evaluation | Should -BeFalse
        Set-State $ask
        $script:calls | Should -BeNullOrEmpty
    }
    It 'knows an evaluation by its channel too, and its last day' {
        Set-FakeRegistry @{ $edition = 'ServerDatacenter' }
        $script:product.EvaluationEndDate = Get-Utc '2027-03-01'
        $r = Test-State (New-Context)
        $r.Facts.evaluation | Should -BeTrue
        $r.Facts.evaluationEndDate | Should -Be '2027-03-01T00:00:00.0000000Z'
    }
    It 'goes on where the licensing service is silent' {
        Mock Get-CimInstance { throw 'sppsvc is down' } -ParameterFilter { $ClassName -eq 'SoftwareLicensingProduct' }
        (Test-State (New-Context)).Facts.activation | Should -Be 'the licensing service does not answer: sppsvc is down'
        Set-State (New-Context @{ activate = $true; attempts = 1 })
        $r = Test-State $ask
        $r.State | Should -Be 'present'
        $r.Facts.licenseStatus | Should -Be -1
        $r.Facts.activation | Should -Be 'not activated: sppsvc is down'
    }
}
