# The firewall, network profiles, and WinRM's configuration.

function Standin-New-NetFirewallRule {
    param($p)
    $name = if ($p.ContainsKey('Name')) { $p.Name } else { "{$([Guid]::NewGuid().ToString().ToUpperInvariant())}" }
    if ((Get-StandinSection 'firewall').ContainsKey($name)) { Write-StandinError 'Cannot create a file when that file already exists.' 'Windows System Error 183,New-NetFirewallRule' 'ResourceExists'; return }
    $pick = { param($k, $d) if ($p.ContainsKey($k)) { "$($p[$k])" } else { $d } }
    $rule = @{
        Name = $name; DisplayName = $p.DisplayName; Direction = (& $pick 'Direction' 'Inbound'); Action = (& $pick 'Action' 'Allow'); Enabled = (& $pick 'Enabled' 'True')
        Profile = (& $pick 'Profile' 'Any'); Protocol = (& $pick 'Protocol' 'Any'); LocalPort = (& $pick 'LocalPort' 'Any')
    }
    Update-StandinSection 'firewall' { param($s) $s[$name] = $rule }
    ConvertTo-StandinRule $rule
}

function ConvertTo-StandinRule { param($r) [pscustomobject]@{ Name = $r.Name; InstanceID = $r.Name; DisplayName = $r.DisplayName; Direction = $r.Direction; Action = $r.Action; Enabled = $r.Enabled; Profile = $r.Profile } }

function Find-StandinRule {
    param($p)
    $all = Get-StandinSection 'firewall'
    if ($p.ContainsKey('InputObject')) { $p = @{ Name = @($p.InputObject | ForEach-Object { $_.Name }) } }
    if (-not $p.ContainsKey('Name')) { return @($all.Values) }
    foreach ($name in $p.Name) {
        if ($all.ContainsKey($name)) { $all[$name] }
        else { Write-StandinError "No MSFT_NetFirewallRule objects found with property 'InstanceID' equal to '$name'.  Verify the value of the property and retry." 'CmdletizationQuery_NotFound_InstanceID,Get-NetFirewallRule' }
    }
}

function Standin-Get-NetFirewallRule { param($p) Find-StandinRule $p | ForEach-Object { ConvertTo-StandinRule $_ } }
function Standin-Remove-NetFirewallRule { param($p) foreach ($r in @(Find-StandinRule $p)) { Update-StandinSection 'firewall' { param($s) $s.Remove($r.Name) } } }

function Standin-Get-NetFirewallPortFilter {
    param($p)
    if (-not $p.ContainsKey('AssociatedNetFirewallRule')) { throw 'the stand-in knows port filters of a rule only' }
    foreach ($r in Find-StandinRule @{ Name = $p.AssociatedNetFirewallRule.Name }) { [pscustomobject]@{ InstanceID = $r.Name; Protocol = $r.Protocol; LocalPort = $r.LocalPort } }
}

# A new network is public until somebody says otherwise.
function Standin-Get-NetConnectionProfile {
    param($p)
    $section = Get-StandinSection 'network'
    $category = if ($section.ContainsKey('Category')) { $section.Category } else { 'Public' }
    [pscustomobject]@{ Name = 'Network'; InterfaceAlias = 'Ethernet'; InterfaceIndex = 4; NetworkCategory = $category; IPv4Connectivity = 'Internet' }
}

function Standin-Set-NetConnectionProfile {
    param($p)
    if ($p.ContainsKey('InterfaceIndex') -and @($p.InterfaceIndex)[0] -ne 4) { Write-StandinError "No MSFT_NetConnectionProfile objects found with property 'InterfaceIndex' equal to '$($p.InterfaceIndex)'."; return }
    Update-StandinSection 'network' { param($s) $s.Category = "$($p.NetworkCategory)" }
}

function Get-StandinListener {
    $w = Invoke-StandinAgent winrm
    $names = Get-StandinSection 'wsman'
    if ($w.http) { [pscustomobject]@{ Address = '*'; Transport = 'HTTP'; Port = '5985'; Hostname = ''; Enabled = 'true'; URLPrefix = 'wsman'; CertificateThumbprint = '' } }
    if ($w.https) { [pscustomobject]@{ Address = '*'; Transport = 'HTTPS'; Port = '5986'; Hostname = "$($names['Hostname'])"; Enabled = 'true'; URLPrefix = 'wsman'; CertificateThumbprint = $w.certificate } }
}

function Set-StandinWinRM { param([hashtable]$Change) Invoke-StandinAgent winrm set (ConvertTo-Json -InputObject $Change -Compress) | Out-Null }

# The values of a resource; names are those of "winrm get winrm/config".
function Get-StandinWSManConfig {
    param([string]$Resource)
    $w = Invoke-StandinAgent winrm
    $more = Get-StandinSection 'wsman'
    $values = switch ($Resource.ToLowerInvariant()) {
        'winrm/config' { [ordered]@{ MaxEnvelopeSizekb = '500'; MaxTimeoutms = '60000'; MaxBatchItems = '32000' } }
        'winrm/config/service' { [ordered]@{ AllowUnencrypted = "$([bool]$w.allowUnencrypted)".ToLowerInvariant(); MaxConnections = '300'; IPv4Filter = '*'; IPv6Filter = '*' } }
        'winrm/config/service/auth' { [ordered]@{ Basic = "$([bool]$w.basic)".ToLowerInvariant(); Kerberos = 'true'; Negotiate = 'true'; Certificate = 'false'; CredSSP = 'false' } }
        default { throw "The WS-Management service cannot process the request. The resource URI ($Resource) was not found in the WS-Management catalog." }
    }
    foreach ($k in @($values.Keys)) { if ($more.ContainsKey("$Resource/$k")) { $values[$k] = $more["$Resource/$k"] } }
    $values
}

function Standin-Get-WSManInstance {
    param($p)
    if ("$($p.ResourceURI)" -ne 'winrm/config/Listener') { return [pscustomobject](Get-StandinWSManConfig "$($p.ResourceURI)") }
    if (-not $p.Enumerate) { throw 'the stand-in knows listeners with -Enumerate only' }
    Get-StandinListener
}

function Standin-Set-WSManInstance {
    param($p)
    $uri = "$($p.ResourceURI)".ToLowerInvariant()
    $known = Get-StandinWSManConfig $uri
    foreach ($k in $p.ValueSet.Keys) {
        if (-not $known.Contains($k)) { throw "The WS-Management service cannot process the request: there is no $k in $uri." }
        $value = "$($p.ValueSet[$k])".ToLowerInvariant()
        switch ("$uri/$k") {
            'winrm/config/service/auth/Basic' { Set-StandinWinRM @{ basic = ($value -eq 'true') } }
            'winrm/config/service/AllowUnencrypted' { Set-StandinWinRM @{ allowUnencrypted = ($value -eq 'true') } }
            default { Update-StandinSection 'wsman' { param($s) $s["$uri/$k"] = $value } }
        }
    }
    [pscustomobject](Get-StandinWSManConfig $uri)
}

function Get-StandinTransport {
    param($p)
    if ("$($p.ResourceURI)" -ne 'winrm/config/Listener') { throw "the stand-in makes and removes listeners only, not $($p.ResourceURI)" }
    $transport = "$($p.SelectorSet.Transport)"
    if ($p.SelectorSet.Address -ne '*' -or $transport -notin 'HTTP', 'HTTPS') { throw 'The WS-Management service cannot process the request because the request contained invalid selectors for the resource.' }
    $transport
}

function Standin-New-WSManInstance {
    param($p)
    $transport = Get-StandinTransport $p
    if (@(Get-StandinListener | Where-Object { $_.Transport -eq $transport }).Count) { throw 'The WS-Management service cannot create the resource because it already exists.' }
    $port = @{ HTTP = '5985'; HTTPS = '5986' }[$transport]
    if ($p.ValueSet.ContainsKey('Port') -and "$($p.ValueSet.Port)" -ne $port) { throw "the stand-in listens with $transport on port $port only" }
    if ($transport -eq 'HTTP') { Set-StandinWinRM @{ http = $true } }
    else {
        $thumbprint = "$($p.ValueSet.CertificateThumbprint)"
        if (@(Invoke-StandinAgent certificates | ForEach-Object { $_ }) -notcontains $thumbprint) { throw "The requested certificate $thumbprint could not be found." }
        Update-StandinSection 'wsman' { param($s) $s.Hostname = "$($p.ValueSet.Hostname)" }
        Set-StandinWinRM @{ https = $true; certificate = $thumbprint }
    }
    Get-StandinListener | Where-Object { $_.Transport -eq $transport }
}

function Standin-Remove-WSManInstance {
    param($p)
    $transport = Get-StandinTransport $p
    if (-not @(Get-StandinListener | Where-Object { $_.Transport -eq $transport }).Count) { throw 'The WS-Management service cannot process the request. The service cannot find the resource identified by the resource URI and selectors.' }
    if ($transport -eq 'HTTP') { Set-StandinWinRM @{ http = $false } } else { Set-StandinWinRM @{ https = $false; certificate = '' } }
}

function Standin-Import-PfxCertificate {
    param($p)
    if ("$($p.CertStoreLocation)".TrimEnd('\') -ne 'Cert:\LocalMachine\My') { throw "the stand-in has the store Cert:\LocalMachine\My only, not $($p.CertStoreLocation)" }
    $secret = if ($p.ContainsKey('Password')) { ConvertFrom-StandinSecret $p.Password } else { '' }
    $thumbprint = Invoke-StandinAgent certificates import (Resolve-StandinPath $p.FilePath) $secret
    Get-Item -LiteralPath "Cert:\LocalMachine\My\$thumbprint"
}
