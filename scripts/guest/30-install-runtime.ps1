# containerd's folders and configuration; its programs and service when they
# come with the seed.
#   configVersion  of config.toml: 3 (default, read by every containerd 2.x) or 2 (1.7)
#   sandboxImage   the pause image
#   binDirs        folders of CNI plugins, default C:/opt/cni/bin
#   confDir        folder of CNI configurations, default C:/etc/cni/net.d
#   payload\containerd\*.exe  optional: containerd.exe, ctr.exe, containerd-shim-runhcs-v1.exe, crictl.exe

$script:Folder = 'C:\Program Files\containerd'
$script:Config = 'C:\Program Files\containerd\config.toml'
$script:DataFolder = 'C:\ProgramData\containerd'
$script:LogFile = 'C:\ProgramData\containerd\containerd.log'
$script:CertsFolder = 'C:\etc\containerd\certs.d'
$script:EnvironmentKey = 'HKLM:\SYSTEM\CurrentControlSet\Control\Session Manager\Environment'
$script:Endpoint = 'npipe:////./pipe/containerd-containerd'
# Defender holds layers open while containerd unpacks them.
$script:Excluded = @('C:\Program Files\containerd\containerd.exe', 'C:\Program Files\containerd\ctr.exe')

# A literal string in TOML; forward slashes, which nothing takes for escapes.
function ConvertTo-Toml([string]$Value) {
    if ($Value -match "['\r\n]") { throw "containerd's configuration can't hold the value $Value" }
    "'" + $Value.Replace('\', '/') + "'"
}

function Get-ConfigText($Context) {
    $version = [int](Get-WboxParameter $Context.Parameters 'configVersion' -Default 3)
    $image = ConvertTo-Toml (Get-WboxParameter $Context.Parameters 'sandboxImage')
    $bin = @(Get-WboxParameter $Context.Parameters 'binDirs' -Default @('C:/opt/cni/bin') | ForEach-Object { ConvertTo-Toml $_ })
    $conf = ConvertTo-Toml (Get-WboxParameter $Context.Parameters 'confDir' -Default 'C:/etc/cni/net.d')
    $lines = @(
        "version = $version"
        "root = $(ConvertTo-Toml "$DataFolder\root")"
        "state = $(ConvertTo-Toml "$DataFolder\state")"
        ''
    )
    switch ($version) {
        3 {
            $lines += @(
                "[plugins.'io.containerd.cri.v1.images'.pinned_images]"
                "  sandbox = $image"
                "[plugins.'io.containerd.cri.v1.images'.registry]"
                "  config_path = $(ConvertTo-Toml $CertsFolder)"
                "[plugins.'io.containerd.cri.v1.runtime'.cni]"
                # A list since 2.1; the single bin_dir is to go with 2.4.
                "  bin_dirs = [$($bin -join ', ')]"
                "  conf_dir = $conf"
            )
        }
        2 {
            if ($bin.Count -ne 1) { throw 'containerd 1.7 takes exactly one folder of CNI plugins' }
            $lines += @(
                "[plugins.'io.containerd.grpc.v1.cri']"
                "  sandbox_image = $image"
                "[plugins.'io.containerd.grpc.v1.cri'.registry]"
                "  config_path = $(ConvertTo-Toml $CertsFolder)"
                "[plugins.'io.containerd.grpc.v1.cri'.cni]"
                "  bin_dir = $($bin[0])"
                "  conf_dir = $conf"
            )
        }
        default { throw "configVersion is $version, not 2 or 3" }
    }
    ($lines -join "`n") + "`n"
}

function Get-Folders($Context) {
    $paths = @(Get-WboxParameter $Context.Parameters 'binDirs' -Default @('C:/opt/cni/bin')) + (Get-WboxParameter $Context.Parameters 'confDir' -Default 'C:/etc/cni/net.d')
    @($Folder, "$DataFolder\root", "$DataFolder\state", $CertsFolder) + @($paths | ForEach-Object { $_.Replace('/', '\') })
}

function Get-SeedProgram($Context) {
    $from = Join-Path $Context.Payload 'containerd'
    if (-not (Test-Path -LiteralPath $from)) { return }
    Get-ChildItem -LiteralPath $from -Filter '*.exe' | Where-Object { -not $_.PSIsContainer } | ForEach-Object { Join-Path $from $_.Name }
}

function Get-InstalledProgram {
    if (Test-Path -LiteralPath $Folder) { Get-ChildItem -LiteralPath $Folder -Filter '*.exe' }
}

# The exclusions that Defender lacks; nothing where Defender is not there.
function Get-MissingExclusion {
    if ($null -eq (Get-Command -Name 'Get-MpPreference' -ErrorAction Ignore)) { return }
    try { $have = @((Get-MpPreference).ExclusionProcess) }
    catch {
        Write-WboxLog "Defender does not answer: $($_.Exception.Message)"
        return
    }
    $Excluded | Where-Object { $have -notcontains $_ }
}

function Test-State($Context) {
    $missing = @(Get-Folders $Context | Where-Object { -not (Test-Path -LiteralPath $_ -PathType Container) } | ForEach-Object { "there is no folder $_" })
    if ((Read-WboxTextFile $Config) -cne (Get-ConfigText $Context)) { $missing += "$Config is not as it should be" }
    if (-not (Test-WboxMachinePath $Folder)) { $missing += "$Folder is not in PATH" }
    $missing += @(Get-MissingExclusion | ForEach-Object { "Defender does not leave $_ alone" })
    foreach ($file in Get-SeedProgram $Context) {
        $to = Join-Path $Folder (Split-Path -Leaf $file)
        if (-not (Test-Path -LiteralPath $to) -or (Get-WboxDigest $to) -ne (Get-WboxDigest $file)) { $missing += "$to is not the one of the seed" }
    }
    $facts = @{ containerd = 'not installed' }
    if (@(Get-SeedProgram $Context).Count -gt 0 -or @(Get-InstalledProgram).Count -gt 0) {
        $service = Get-Service -Name 'containerd' -ErrorAction Ignore
        if ($null -eq $service) { $missing += 'there is no service containerd' }
        elseif ("$($service.Status)" -ne 'Running') { $missing += "the service containerd is $($service.Status)" }
        else {
            $facts.containerd = (Invoke-WboxProgram -Path "$Folder\containerd.exe" -ArgumentList '--version').Output.Trim()
            $facts.programs = @(Get-InstalledProgram | ForEach-Object { "$($_.Name) $(Get-WboxDigest (Join-Path $Folder $_.Name))" })
        }
    }
    New-WboxResult -Missing $missing -Facts $facts
}

function Set-State($Context) {
    New-WboxFolder (Get-Folders $Context)
    Write-WboxTextFile $Config (Get-ConfigText $Context) | Out-Null
    Add-WboxMachinePath $Folder
    foreach ($program in Get-MissingExclusion) { Add-MpPreference -ExclusionProcess $program }

    $files = @(Get-SeedProgram $Context)
    if ($files.Count -eq 0) { return New-WboxResult -Facts @{ containerd = 'not installed' } }
    $service = Get-Service -Name 'containerd' -ErrorAction Ignore
    if ($null -ne $service -and "$($service.Status)" -ne 'Stopped') { Stop-Service -Name 'containerd' -Force }
    foreach ($file in $files) { Copy-WboxFile -Source $file -Destination (Join-Path $Folder (Split-Path -Leaf $file)) | Out-Null }
    if (Test-Path -LiteralPath "$Folder\crictl.exe") { Set-WboxRegistryValue $EnvironmentKey 'CONTAINER_RUNTIME_ENDPOINT' $Endpoint 'String' }

    # A key of another version is ignored without a word, a wrong one is not.
    Invoke-WboxProgram -Path "$Folder\containerd.exe" -ArgumentList '--config', $Config, 'config', 'dump' | Out-Null
    if ($null -eq $service) {
        # Without a log file the service's log goes nowhere.
        Invoke-WboxProgram -Path "$Folder\containerd.exe" -ArgumentList '--register-service', '--config', $Config, '--log-file', $LogFile | Out-Null
    }
    Start-Service -Name 'containerd'
}
