# Folders, plugins and firewall rules of a CNI. Its networks are made at join:
# in the box they would tie it to a network card and be gone after a boot.
#   cni   none, calico, antrea or flannel
#   bgp   calico with BGP instead of VXLAN, default false
#   payload\cni\*.exe  optional: CNI plugins

$script:BinFolder = 'C:\opt\cni\bin'
$script:Folders = @('C:\opt\cni\bin', 'C:\etc\cni\net.d', 'C:\var\log\cni')

function Get-Rules($Context) {
    $cni = Get-WboxParameter $Context.Parameters 'cni' -Default 'none'
    $bgp = [bool](Get-WboxParameter $Context.Parameters 'bgp' -Default $false)
    $vxlan = @{ Name = 'wbox-cni-vxlan'; Protocol = 'UDP'; Port = 4789; DisplayName = 'wbox: VXLAN' }
    switch ($cni) {
        'none' { }
        'calico' {
            if ($bgp) { @{ Name = 'wbox-cni-bgp'; Protocol = 'TCP'; Port = 179; DisplayName = 'wbox: BGP' } } else { $vxlan }
        }
        # Windows knows one port for VXLAN only, whatever Linux nodes use.
        'flannel' { $vxlan }
        'antrea' { @{ Name = 'wbox-cni-geneve'; Protocol = 'UDP'; Port = 6081; DisplayName = 'wbox: Geneve' } }
        default { throw "there is no CNI named $cni" }
    }
}

function Get-Plugin($Context) {
    $from = Join-Path $Context.Payload 'cni'
    if (-not (Test-Path -LiteralPath $from)) { return }
    Get-ChildItem -LiteralPath $from -Filter '*.exe' | ForEach-Object { Join-Path $from $_.Name }
}

function Test-State($Context) {
    $missing = @($Folders | Where-Object { -not (Test-Path -LiteralPath $_ -PathType Container) } | ForEach-Object { "there is no folder $_" })
    foreach ($rule in @(Get-Rules $Context)) {
        if (-not (Test-WboxFirewallRule -Name $rule.Name -Protocol $rule.Protocol -Port $rule.Port)) { $missing += "the firewall is closed for $($rule.Protocol) $($rule.Port)" }
    }
    foreach ($file in Get-Plugin $Context) {
        $to = Join-Path $BinFolder (Split-Path -Leaf $file)
        if (-not (Test-Path -LiteralPath $to) -or (Get-WboxDigest $to) -ne (Get-WboxDigest $file)) { $missing += "$to is not the one of the seed" }
    }
    New-WboxResult -Missing $missing -Facts @{ cni = (Get-WboxParameter $Context.Parameters 'cni' -Default 'none') }
}

function Set-State($Context) {
    New-WboxFolder $Folders
    foreach ($rule in @(Get-Rules $Context)) { Set-WboxFirewallRule @rule }
    foreach ($file in Get-Plugin $Context) { Copy-WboxFile -Source $file -Destination (Join-Path $BinFolder (Split-Path -Leaf $file)) | Out-Null }
}
