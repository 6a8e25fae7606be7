# CIM classes.

function Standin-Get-CimInstance {
    param($p)
    if (-not $p.ContainsKey('ClassName')) { throw 'the stand-in knows Get-CimInstance with -ClassName only' }
    $instances = @(switch ($p.ClassName) {
            'Win32_OperatingSystem' {
                $info = Invoke-StandinAgent info
                [pscustomobject]@{
                    LastBootUpTime = Get-StandinBootTime; BuildNumber = "$($info.build)"; Version = "10.0.$($info.build)"
                    Caption = "Microsoft Windows Server $($info.release) (stand-in)"; CSName = $info.computerName; LocalDateTime = Get-Date
                    InstallDate = ([DateTime]$info.installed).ToLocalTime()
                }
            }
            'Win32_ComputerSystem' {
                $info = Invoke-StandinAgent info
                [pscustomobject]@{ Name = $info.computerName; Domain = 'WORKGROUP'; PartOfDomain = $false; Manufacturer = 'wbox'; Model = 'stand-in' }
            }
            'Win32_LogicalDisk' {
                foreach ($v in Get-StandinVolume) {
                    if ($v.DriveLetter) { [pscustomobject]@{ DeviceID = "$($v.DriveLetter):"; VolumeName = $v.FileSystemLabel; DriveType = $v.Kind; FileSystem = $v.FileSystem; Size = $v.Size } }
                }
            }
            'Win32_Service' {
                foreach ($s in (Get-StandinSection 'services').Values) {
                    [pscustomobject]@{
                        Name = $s.Name; DisplayName = $s.DisplayName; PathName = $s.Path; StartMode = $s.StartMode; StartName = $s.Account
                        State = $s.Status; DelayedAutoStart = [bool]$s.Delayed; Started = ($s.Status -eq 'Running')
                    }
                }
            }
            'Win32_UserProfile' {
                $profiles = Get-StandinSection 'profiles'
                foreach ($name in @($profiles.Keys)) {
                    [pscustomobject]@{ Class = 'Win32_UserProfile'; SID = $profiles[$name].SID; LocalPath = "C:\Users\$name"; Loaded = ($Standin.Sessions[$name] -gt 0); Special = $false }
                }
            }
            'SoftwareLicensingService' { [pscustomobject]@{ Class = 'SoftwareLicensingService'; Version = 'stand-in' } }
            'SoftwareLicensingProduct' {
                # Windows itself, and one of the many products without a key.
                $licence = Invoke-StandinAgent licence
                $never = [DateTime]::SpecifyKind([DateTime]'1601-01-01', 'Utc')
                foreach ($key in 'STAND', $null) {
                    [pscustomobject]@{
                        Class = 'SoftwareLicensingProduct'; ApplicationID = '55c92734-d682-4d71-983e-d6ec3f16059f'; PartialProductKey = $key
                        Name = 'Windows(R), stand-in'; Description = $licence.description; EvaluationEndDate = $never
                        LicenseStatus = [uint32]$(if ($key) { $licence.status }); GracePeriodRemaining = [uint32]$(if ($key) { $licence.remaining })
                    }
                }
            }
            default { Write-StandinError "Invalid class '$($p.ClassName)': the stand-in does not have it" 'HRESULT 0x80041010,Get-CimInstance' }
        })
    Select-StandinInstance $instances $p.Filter
}

function Standin-Remove-CimInstance {
    param($p)
    foreach ($instance in @($p.InputObject)) {
        if (-not $instance.PSObject.Properties['Class'] -or $instance.Class -ne 'Win32_UserProfile') { throw 'the stand-in removes instances of Win32_UserProfile only' }
        if ($instance.Loaded) { Write-StandinError 'The profile is in use.' 'HRESULT 0x80070020' 'ResourceBusy'; continue }
        $name = $instance.LocalPath.Substring('C:\Users\'.Length)
        Update-StandinSection 'profiles' { param($s) $s.Remove($name) }
        $folder = [IO.Path]::Combine($Standin.C, 'Users', $name)
        if ([IO.Directory]::Exists($folder)) { [IO.Directory]::Delete($folder, $true) }
    }
}

# Activation asks nobody: it works where the network leads out.
function Standin-Invoke-CimMethod {
    param($p)
    $class = if ($p.InputObject -and $p.InputObject.PSObject.Properties['Class']) { $p.InputObject.Class } else { '' }
    switch ("$class.$($p.MethodName)") {
        'SoftwareLicensingProduct.Activate' {
            try { Invoke-StandinAgent licence activate | Out-Null }
            catch { Write-StandinError "$($_.Exception.Message)" 'HRESULT 0x80072ee7,Invoke-CimMethod' 'NotSpecified'; return }
        }
        'SoftwareLicensingService.RefreshLicenseStatus' { }
        default { throw "the stand-in does not know the method $_" }
    }
    [pscustomobject]@{ ReturnValue = [uint32]0 }
}
