# Everything of a node that does not depend on the binaries: folders, PATH,
# kubelet's service, the firewall, and the task that copies the payload at boot.
#   minor             of Kubernetes
#   kubeletArgs       kubelet's arguments, but for those that kubeadm writes at join
#   featureOverrides  [{id, value}] below the key FeatureManagement\Overrides
#   registry          [{path, name, value, type}] more values, default none
#   portStart, portCount  dynamic TCP ports, default 34000 and 31536: below lie the node ports

$script:HomeFolder = 'C:\ProgramData\wbox'
$script:KubeFolder = 'C:\k'
$script:Folders = @(
    'C:\k', 'C:\var\lib\kubelet', 'C:\var\lib\kubelet\pki', 'C:\var\log\kubelet', 'C:\var\log\pods',
    'C:\etc\kubernetes', 'C:\etc\kubernetes\manifests', 'C:\etc\kubernetes\pki', 'C:\ProgramData\wbox\payload'
)
$script:OverridesKey = 'HKLM:\SYSTEM\CurrentControlSet\Policies\Microsoft\FeatureManagement\Overrides'
# file on the seed -> where it goes
$script:Files = @{
    'Wbox.psm1'                     = 'C:\ProgramData\wbox\Wbox.psm1'
    'Sync-WboxPayload.ps1'          = 'C:\ProgramData\wbox\Sync-WboxPayload.ps1'
    'Set-WboxNetwork.ps1'           = 'C:\ProgramData\wbox\Set-WboxNetwork.ps1'
    'Update-WboxKubeletService.ps1' = 'C:\k\Update-WboxKubeletService.ps1'
}
$script:TaskName = 'wbox-payload'
$script:TaskArgument = '-NoProfile -NonInteractive -ExecutionPolicy Bypass -File C:\ProgramData\wbox\Sync-WboxPayload.ps1'

# What Update-WboxKubeletService.ps1 starts from once the node has joined.
function Get-KubeletText($Context) {
    $node = [ordered]@{
        minor = [int](Get-WboxParameter $Context.Parameters 'minor')
        arguments = @(Get-WboxParameter $Context.Parameters 'kubeletArgs' -Default @())
    }
    (ConvertTo-Json -InputObject $node) -replace "`r", ''
}

function Get-CommandLine($Context) {
    Get-WboxKubeletCommandLine @(Get-WboxParameter $Context.Parameters 'kubeletArgs' -Default @())
}

function Get-RegistryValues($Context) {
    foreach ($o in @(Get-WboxParameter $Context.Parameters 'featureOverrides' -Default @())) {
        @{ Path = $OverridesKey; Name = "$($o.id)"; Value = [int]$o.value; Type = 'DWord' }
    }
    foreach ($r in @(Get-WboxParameter $Context.Parameters 'registry' -Default @())) {
        @{ Path = $r.path; Name = $r.name; Value = $r.value; Type = (Get-WboxParameter $r 'type' -Default 'DWord') }
    }
}

# The first port and the number of ports, whatever the words around them.
function Get-DynamicPorts {
    $text = (Invoke-WboxProgram -Path 'netsh.exe' -ArgumentList 'int', 'ipv4', 'show', 'dynamicportrange', 'tcp').Output
    @([regex]::Matches($text, ':\s*(\d+)') | ForEach-Object { [int]$_.Groups[1].Value })
}

function Test-State($Context) {
    $missing = @($Folders | Where-Object { -not (Test-Path -LiteralPath $_ -PathType Container) } | ForEach-Object { "there is no folder $_" })
    foreach ($name in $Files.Keys | Sort-Object) {
        $to = $Files[$name]
        if (-not (Test-Path -LiteralPath $to)) { $missing += "there is no $to" }
        elseif ((Get-WboxDigest $to) -ne (Get-WboxDigest (Join-Path $Context.Scripts $name))) { $missing += "$to is another one" }
    }
    if (-not (Test-WboxMachinePath $KubeFolder)) { $missing += "$KubeFolder is not in PATH" }
    if ((Read-WboxTextFile "$HomeFolder\kubelet.json") -cne (Get-KubeletText $Context)) { $missing += 'kubelet.json is not as it should be' }
    foreach ($v in @(Get-RegistryValues $Context)) {
        if ((Get-WboxRegistryValue $v.Path $v.Name) -ne $v.Value) { $missing += "$($v.Path)\$($v.Name) is not $($v.Value)" }
    }
    $ports = @(Get-DynamicPorts)
    $start = [int](Get-WboxParameter $Context.Parameters 'portStart' -Default 34000)
    $count = [int](Get-WboxParameter $Context.Parameters 'portCount' -Default 31536)
    if ("$ports" -ne "$start $count") { $missing += "the dynamic ports are $ports" }
    if (-not (Test-WboxFirewallRule -Name 'wbox-kubelet' -Protocol TCP -Port 10250)) { $missing += 'the firewall is closed for TCP 10250' }
    $task = Get-ScheduledTask -TaskName $TaskName -ErrorAction Ignore
    if ($null -eq $task) { $missing += "there is no task $TaskName" }
    elseif (@($task.Actions)[0].Arguments -ne $TaskArgument -or "$($task.State)" -eq 'Disabled') { $missing += "the task $TaskName is another one" }

    $missing += @(Get-ServiceFault $Context)
    New-WboxResult -Missing $missing -Facts @{ minor = [int](Get-WboxParameter $Context.Parameters 'minor'); kubelet = (Get-CommandLine $Context) }
}

function Get-ServiceFault($Context) {
    $service = Get-CimInstance -ClassName Win32_Service -Filter "Name='kubelet'"
    if ($null -eq $service) { return 'there is no service kubelet' }
    if ($service.PathName -cne (Get-CommandLine $Context)) { "kubelet's command line is $($service.PathName)" }
    if ($service.StartMode -ne 'Manual') { "kubelet's start mode is $($service.StartMode)" }
    if ($service.StartName -ne 'LocalSystem') { "kubelet runs as $($service.StartName)" }
}

function Set-State($Context) {
    New-WboxFolder $Folders
    foreach ($name in $Files.Keys) { Copy-WboxFile -Source (Join-Path $Context.Scripts $name) -Destination $Files[$name] | Out-Null }
    Protect-Home
    Write-WboxTextFile "$HomeFolder\kubelet.json" (Get-KubeletText $Context) | Out-Null
    Add-WboxMachinePath $KubeFolder
    foreach ($v in @(Get-RegistryValues $Context)) { Set-WboxRegistryValue @v }

    $start = "$(Get-WboxParameter $Context.Parameters 'portStart' -Default 34000)"
    $count = "$(Get-WboxParameter $Context.Parameters 'portCount' -Default 31536)"
    Invoke-WboxProgram -Path 'netsh.exe' -ArgumentList 'int', 'ipv4', 'set', 'dynamicportrange', 'tcp', $start, $count | Out-Null
    Set-WboxFirewallRule -Name 'wbox-kubelet' -Protocol TCP -Port 10250 -DisplayName 'wbox: kubelet'
    Set-KubeletService (Get-CommandLine $Context)

    $action = New-ScheduledTaskAction -Execute 'powershell.exe' -Argument $TaskArgument
    $principal = New-ScheduledTaskPrincipal -UserId 'SYSTEM' -LogonType ServiceAccount -RunLevel Highest
    $settings = New-ScheduledTaskSettingsSet -AllowStartIfOnBatteries -DontStopIfGoingOnBatteries -ExecutionTimeLimit (New-TimeSpan -Minutes 30)
    Register-ScheduledTask -TaskName $TaskName -Action $action -Trigger (New-ScheduledTaskTrigger -AtStartup) -Principal $principal -Settings $settings -Description 'Copies the payload partition to C:\k and starts kubelet once the node has joined.' -Force | Out-Null
}

# What SYSTEM runs at boot must not be writable for everybody: ProgramData lets
# all users make files.
function Protect-Home {
    foreach ($folder in $HomeFolder, $KubeFolder) {
        Invoke-WboxProgram -Path 'icacls.exe' -ArgumentList $folder, '/inheritance:r', '/grant:r', '*S-1-5-18:(OI)(CI)F', '*S-1-5-32-544:(OI)(CI)F', '*S-1-5-32-545:(OI)(CI)RX', '/Q' | Out-Null
    }
}

function Set-KubeletService([string]$CommandLine) {
    if ($null -eq (Get-Service -Name 'kubelet' -ErrorAction Ignore)) {
        # On demand: the boot task starts it, after the payload and once joined.
        New-Service -Name 'kubelet' -DisplayName 'kubelet' -Description 'The Kubernetes node agent' -BinaryPathName $CommandLine -StartupType Manual -DependsOn 'containerd' | Out-Null
    }
    else {
        Invoke-WboxProgram -Path 'sc.exe' -ArgumentList 'config', 'kubelet', 'start=', 'demand', 'binPath=', $CommandLine, 'depend=', 'containerd' | Out-Null
    }
    Invoke-WboxProgram -Path 'sc.exe' -ArgumentList 'failure', 'kubelet', 'reset=', '86400', 'actions=', 'restart/10000/restart/10000/restart/10000' | Out-Null
}
