# Test only, on the finished box: C:\k holds the payload, byte for byte, and
# the service and the boot task are there. Nothing of it is run.
#   files  [{name, sha256, size}]

$script:KubeFolder = 'C:\k'

# The machine type in a program's PE header, or why there is none.
function Get-Machine([string]$Path) {
    $stream = [IO.File]::OpenRead((Resolve-WboxPath $Path))
    try {
        $reader = New-Object IO.BinaryReader $stream
        if ($stream.Length -lt 64 -or $reader.ReadUInt16() -ne 0x5A4D) { return 'no program for Windows' }
        $stream.Position = 0x3C
        $at = $reader.ReadUInt32()
        if ($at + 6 -gt $stream.Length) { return 'a program cut off' }
        $stream.Position = $at
        if ($reader.ReadUInt32() -ne 0x4550) { return 'no PE program' }
        $machine = $reader.ReadUInt16()
        if ($machine -eq 0x8664) { return 'amd64' }
        'machine 0x{0:x4}' -f $machine
    }
    finally { $stream.Dispose() }
}

function Test-PayloadFile($File) {
    $path = Join-Path $KubeFolder $File.name
    if (-not (Test-Path -LiteralPath $path -PathType Leaf)) { return "there is no $path" }
    $size = (Get-Item -LiteralPath $path).Length
    if ($size -ne $File.size) { return "$path has $size bytes instead of $($File.size)" }
    $digest = Get-WboxDigest $path
    if ($digest -ne $File.sha256) { return "$path has the SHA-256 $digest instead of $($File.sha256)" }
    if ($File.name -like '*.exe') {
        $machine = Get-Machine $path
        if ($machine -ne 'amd64') { return "$path is $machine" }
    }
}

function Test-State($Context) {
    $files = @(Get-WboxParameter $Context.Parameters 'files')
    $missing = @($files | ForEach-Object { Test-PayloadFile $_ })
    # Our helper is the only other file there; a folder is Antrea's, where its programs were installed.
    $known = @($files | ForEach-Object { $_.name }) + 'Update-WboxKubeletService.ps1' + 'antrea'
    $missing += @(Get-ChildItem -LiteralPath $KubeFolder -ErrorAction Ignore | Where-Object { $known -notcontains $_.Name } | ForEach-Object { "C:\k\$($_.Name) is not of the payload" })

    $state = Read-WboxTextFile 'C:\ProgramData\wbox\payload-state.json'
    if ($null -eq $state) { $missing += 'the payload task has not run' }
    else {
        $failure = (ConvertFrom-Json -InputObject $state).failure
        if ($failure) { $missing += "copying the payload failed: $failure" }
    }
    $facts = @{ files = @($files | ForEach-Object { $_.name }) }
    $service = Get-CimInstance -ClassName Win32_Service -Filter "Name='kubelet'"
    if ($null -eq $service) { $missing += 'there is no service kubelet' }
    else {
        $facts.kubelet = $service.PathName
        if ($service.PathName -notmatch '^C:\\k\\kube-log-runner\.exe .*C:\\k\\kubelet\.exe --windows-service( |$)') { $missing += "kubelet's command line is $($service.PathName)" }
        if ($service.StartMode -ne 'Manual') { $missing += "kubelet's start mode is $($service.StartMode)" }
        $needs = @(Get-WboxRegistryValue 'HKLM:\SYSTEM\CurrentControlSet\Services\kubelet' 'DependOnService')
        if ($needs -notcontains 'containerd') { $missing += 'kubelet does not depend on containerd' }
    }
    $task = Get-ScheduledTask -TaskName 'wbox-payload' -ErrorAction Ignore
    if ($null -eq $task) { $missing += 'there is no task wbox-payload' }
    New-WboxResult -Missing $missing -Facts $facts
}

function Set-State($Context) {
    throw '99-prove-payload only tests'
}
