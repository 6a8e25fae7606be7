# A machine that stays awake, changes nothing by itself, and keeps the payload
# partition out of sight.
#   payloadLabel  label of the payload partition, default WBOX; '' for none

$script:Scheme = '8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c' # high performance, the same on every Windows
$script:PowerKey = 'HKLM:\SYSTEM\CurrentControlSet\Control\Power'
$script:OwnKey = 'HKLM:\SOFTWARE\wbox'
$script:BasicData = '{ebd0a0a2-b9e5-4433-87c0-68b6b72699c7}'

# Registry values that say it all by themselves.
$script:Values = @(
    @{ Path = 'HKLM:\SOFTWARE\Policies\Microsoft\Windows\WindowsUpdate\AU'; Name = 'NoAutoUpdate'; Value = 1 }
    @{ Path = 'HKLM:\SOFTWARE\Policies\Microsoft\Windows\WindowsUpdate\AU'; Name = 'AUOptions'; Value = 2 }
    # The shutdown tracker asks for a reason, and holds a shutdown up.
    @{ Path = 'HKLM:\SOFTWARE\Policies\Microsoft\Windows NT\Reliability'; Name = 'ShutdownReasonOn'; Value = 0 }
    @{ Path = 'HKLM:\SOFTWARE\Policies\Microsoft\Windows NT\Reliability'; Name = 'ShutdownReasonUI'; Value = 0 }
    @{ Path = 'HKLM:\SOFTWARE\Microsoft\ServerManager'; Name = 'DoNotOpenServerManagerAtLogon'; Value = 1 }
)

function Test-State($Context) {
    $missing = @()
    if ((Get-WboxRegistryValue $PowerKey 'HibernateEnabled') -ne 0) { $missing += 'hibernation is on' }
    if ((Invoke-WboxProgram -Path 'powercfg.exe' -ArgumentList '/getactivescheme').Output -notmatch $Scheme) { $missing += 'the power plan is not high performance' }
    if (@(Get-MonitorTimeout | Where-Object { $_ -ne 0 }).Count -gt 0) { $missing += 'the display is turned off after a while' }
    foreach ($v in $Values) {
        if ((Get-WboxRegistryValue $v.Path $v.Name) -ne $v.Value) { $missing += "$($v.Name) is not $($v.Value)" }
    }
    # The network fly-out is suppressed by the key alone.
    if (-not (Test-Path -LiteralPath 'HKLM:\SYSTEM\CurrentControlSet\Control\Network\NewNetworkWindowOff')) { $missing += 'new networks ask what they are' }
    if ((Test-SConfig) -and (Get-WboxRegistryValue $OwnKey 'SConfigAutoLaunch') -ne 0) { $missing += 'SConfig starts at logon' }

    $facts = @{ payloadPartition = 'none' }
    if (Get-WboxParameter $Context.Parameters 'payloadLabel' -Default 'WBOX') {
        $partition = Get-HiddenPartition
        if ($null -eq $partition) { $missing += 'no partition is hidden, read-only and without a drive letter' }
        else { $facts.payloadPartition = "disk $($partition.DiskNumber), partition $($partition.PartitionNumber)" }
    }
    New-WboxResult -Missing $missing -Facts $facts
}

function Set-State($Context) {
    Invoke-WboxProgram -Path 'powercfg.exe' -ArgumentList '/hibernate', 'off' | Out-Null
    Invoke-WboxProgram -Path 'powercfg.exe' -ArgumentList '/setactive', $Scheme | Out-Null
    foreach ($source in 'ac', 'dc') {
        Invoke-WboxProgram -Path 'powercfg.exe' -ArgumentList '/change', "monitor-timeout-$source", '0' | Out-Null
    }
    foreach ($v in $Values) { Set-WboxRegistryValue $v.Path $v.Name $v.Value }
    $key = 'HKLM:\SYSTEM\CurrentControlSet\Control\Network\NewNetworkWindowOff'
    if (-not (Test-Path -LiteralPath $key)) { New-Item -Path $key -Force | Out-Null }

    if (Test-SConfig) {
        # 2019 does not have it, and so does not start it.
        if ((Get-Command -Name 'Set-SConfig').Parameters.ContainsKey('AllUsers')) { Set-SConfig -AutoLaunch $false -AllUsers } # check: ignore command
        else { Set-SConfig -AutoLaunch $false } # check: ignore command
        # What it writes is not documented: remember that it ran.
        Set-WboxRegistryValue $OwnKey 'SConfigAutoLaunch' 0
    }
    $label = Get-WboxParameter $Context.Parameters 'payloadLabel' -Default 'WBOX'
    if ($label) { Hide-PayloadPartition $label }
}

function Test-SConfig {
    $null -ne (Get-Command -Name 'Set-SConfig' -ErrorAction Ignore)
}

# The display's time-outs on mains and on battery in seconds: the last two
# numbers of the answer, whatever the language of the words around them.
function Get-MonitorTimeout {
    $text = (Invoke-WboxProgram -Path 'powercfg.exe' -ArgumentList '/query', 'SCHEME_CURRENT', 'SUB_VIDEO', 'VIDEOIDLE').Output
    $numbers = @([regex]::Matches($text, '0x([0-9a-fA-F]{8})\b') | ForEach-Object { [Convert]::ToInt64($_.Groups[1].Value, 16) })
    @($numbers | Select-Object -Last 2)
}

# A hidden partition has no volume any more, so that it can't be asked for its
# label. The set part has looked at the label and remembers the identifier.
function Get-HiddenPartition {
    $guid = Get-WboxRegistryValue $OwnKey 'PayloadPartition'
    if (-not $guid) { return }
    Get-Partition | Where-Object { "$($_.Guid)" -eq $guid -and $_.IsHidden -and $_.IsReadOnly -and $_.NoDefaultDriveLetter -and -not (Get-Letter $_) }
}

function Get-Letter($Partition) {
    # A partition without a letter has the character 0 there.
    "$($Partition.DriveLetter)".Trim([char]0, ' ')
}

function Hide-PayloadPartition([string]$Label) {
    if (Get-HiddenPartition) { return }
    $volume = @(Get-Volume -FileSystemLabel $Label -ErrorAction Ignore)
    if ($volume.Count -ne 1) { throw "there are $($volume.Count) volumes labelled $Label instead of one" }
    $partition = Get-Partition -Volume $volume[0]
    if ("$($partition.GptType)" -ne $BasicData) { throw "the volume labelled $Label is not on a basic data partition ($($partition.GptType))" }
    $at = @{ DiskNumber = $partition.DiskNumber; PartitionNumber = $partition.PartitionNumber }
    $letter = Get-Letter $partition
    if ($letter) { Remove-PartitionAccessPath @at -AccessPath "${letter}:" }
    Set-WboxRegistryValue $OwnKey 'PayloadPartition' "$($partition.Guid)" 'String'
    Set-Partition @at -NoDefaultDriveLetter $true
    Set-Partition @at -IsReadOnly $true
    # Last: it takes the volume away.
    Set-Partition @at -IsHidden $true
}
