# Test only: Windows is up, set up and quiet, so that the next step may start.
#   services  optional: names of services that must be running

function Test-State($Context) {
    $missing = @(Get-WboxPendingReboot)

    $image = Get-WboxRegistryValue 'HKLM:\SOFTWARE\Microsoft\Windows\CurrentVersion\Setup\State' 'ImageState'
    if ($image -ne 'IMAGE_STATE_COMPLETE') { $missing += "Windows Setup is not complete ($image)" }

    # The worker of the servicing stack: while it runs, features change.
    $worker = @(Get-Process -Name 'TiWorker' -ErrorAction Ignore)
    if ($worker.Count -gt 0) { $missing += 'the servicing stack is at work (TiWorker)' }

    foreach ($name in @(Get-WboxParameter $Context.Parameters 'services' -Default @('WinRM'))) {
        $service = Get-Service -Name $name -ErrorAction Ignore
        if ($null -eq $service) { $missing += "there is no service $name" }
        elseif ("$($service.Status)" -ne 'Running') { $missing += "the service $name is $($service.Status)" }
    }

    $boot = (Get-CimInstance -ClassName Win32_OperatingSystem).LastBootUpTime
    $payload = Get-PayloadTask $boot
    if ($payload) { $missing += $payload }

    $renames = Get-WboxRegistryValue 'HKLM:\SYSTEM\CurrentControlSet\Control\Session Manager' 'PendingFileRenameOperations'
    New-WboxResult -Missing $missing -Facts @{
        bootTime = $boot.ToUniversalTime().ToString('o')
        pendingFileRenames = @($renames | Where-Object { $_ }).Count
        build = "$(Get-WboxRegistryValue 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion' 'CurrentBuildNumber')"
        revision = "$(Get-WboxRegistryValue 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion' 'UBR')"
    }
}

# The boot task that copies the payload has the partition in use while it runs.
function Get-PayloadTask($Boot) {
    $task = Get-ScheduledTask -TaskName 'wbox-payload' -ErrorAction Ignore
    if ($null -eq $task) { return }
    if ("$($task.State)" -eq 'Running') { return 'the payload is being copied' }
    # A task made after the boot need not have run yet: it is waited for only
    # in the first minutes.
    $last = (Get-ScheduledTaskInfo -TaskName 'wbox-payload').LastRunTime
    $young = ([DateTime]::Now - $Boot).TotalMinutes -lt 3
    if ($young -and ($null -eq $last -or $last -lt $Boot)) { return 'the payload task has not run since the boot' }
}

function Set-State($Context) {
    throw '00-test-ready only tests'
}
