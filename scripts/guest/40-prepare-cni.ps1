# Folders, plugins and firewall rules of a CNI. Its networks are made at join:
# in the box they would tie it to a network card and be gone after a boot.
#   cni   none, calico, antrea or flannel
#   bgp   calico with BGP instead of VXLAN, default false
#   places [{file, to}]: the full paths that a program of the payload goes to;
#          one that isn't named goes to the folder of CNI plugins
#   needed names of programs that must be installed
#   payload\cni\*.exe  optional: the CNI's programs and plugins

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

# Where a program goes.
function Get-Destination($Context, [string]$Name) {
    foreach ($place in @(Get-WboxParameter $Context.Parameters 'places' -Default @())) {
        if ($place.file -eq $Name) { return $place.to }
    }
    "$BinFolder\$Name"
}

# The programs of the payload, each with one place that it goes to.
function Get-Program($Context) {
    $from = Join-Path $Context.Payload 'cni'
    if (-not (Test-Path -LiteralPath $from)) { return }
    foreach ($file in @(Get-ChildItem -LiteralPath $from -Filter '*.exe')) {
        foreach ($to in @(Get-Destination $Context $file.Name)) {
            [pscustomobject]@{ From = (Join-Path $from $file.Name); To = $to }
        }
    }
}

function Test-State($Context) {
    $missing = @($Folders | Where-Object { -not (Test-Path -LiteralPath $_ -PathType Container) } | ForEach-Object { "there is no folder $_" })
    foreach ($rule in @(Get-Rules $Context)) {
        if (-not (Test-WboxFirewallRule -Name $rule.Name -Protocol $rule.Protocol -Port $rule.Port)) { $missing += "the firewall is closed for $($rule.Protocol) $($rule.Port)" }
    }
    foreach ($program in @(Get-Program $Context)) {
        if (-not (Test-Path -LiteralPath $program.To) -or (Get-WboxDigest $program.To) -ne (Get-WboxDigest $program.From)) { $missing += "$($program.To) is not the one of the seed" }
    }
    $facts = @{ cni = (Get-WboxParameter $Context.Parameters 'cni' -Default 'none'); programs = @() }
    # Without the seed's payload, on the finished box, what is needed must still be there.
    foreach ($name in @(Get-WboxParameter $Context.Parameters 'needed' -Default @())) {
        foreach ($to in @(Get-Destination $Context $name)) {
            if (Test-Path -LiteralPath $to -PathType Leaf) { $facts.programs += "$to $(Get-WboxDigest $to)" }
            else { $missing += "there is no $to" }
        }
    }
    New-WboxResult -Missing $missing -Facts $facts
}

function Set-State($Context) {
    New-WboxFolder $Folders
    foreach ($rule in @(Get-Rules $Context)) { Set-WboxFirewallRule @rule }
    foreach ($program in @(Get-Program $Context)) { Copy-WboxFile -Source $program.From -Destination $program.To | Out-Null }
}
