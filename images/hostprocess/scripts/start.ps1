# Starts kube-proxy in a HostProcess container on a node of Calico: waits for the
# HNS network, finds the address that overlay traffic leaves from, and hands over.
# Settings come from the environment: NODENAME, and optionally KUBE_NETWORK,
# KUBE_PROXY_FEATURE_GATES and KUBE_PROXY_WAIT_SECONDS.
Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'

function Get-Setting([string]$Name, [string]$Default) {
    $value = [Environment]::GetEnvironmentVariable($Name)
    if ([string]::IsNullOrEmpty($value)) { return $Default }
    return $value
}

# Asks again every second. A pod that gives up is started anew, and its log says
# what was missing.
function Wait-For([string]$What, [int]$Seconds, [scriptblock]$Find) {
    Write-Host "waiting for $What"
    for ($i = 0; $i -lt $Seconds; $i++) {
        $found = & $Find
        if ($found) { return $found }
        Start-Sleep -Seconds 1
    }
    throw "$What did not appear within $Seconds seconds"
}

# From containerd 1.7 on, mounts are where the pod says; before, they were below
# the container's own folder only, and paths in the configuration must say so.
function Get-KubeConfig([string]$Mount) {
    $path = "$Mount/var/lib/kube-proxy/kubeconfig.conf"
    if (-not (Test-Path -LiteralPath $path)) { $path = 'C:/var/lib/kube-proxy/kubeconfig.conf' }
    if (-not (Test-Path -LiteralPath "$Mount/var/run/secrets/kubernetes.io/serviceaccount/token")) { return $path }
    $text = [IO.File]::ReadAllText($path)
    $text = $text.Replace(' /var/run/secrets/', " $Mount/var/run/secrets/")
    $ours = "$Mount/kube-proxy/kubeconfig.conf"
    [IO.File]::WriteAllText($ours, $text, (New-Object Text.UTF8Encoding $false))
    return $ours
}

function Get-ProxyArguments([string]$Mount, [string]$NetworkName, [int]$Seconds) {
    $network = Wait-For "the HNS network $NetworkName" $Seconds {
        Get-HnsNetwork | Where-Object { $_.Name -eq $NetworkName } | Select-Object -First 1
    }
    $arguments = @(
        "--hostname-override=$(Get-Setting 'NODENAME' ([Environment]::MachineName.ToLowerInvariant()))"
        '--proxy-mode=kernelspace'
        '--enable-dsr=true'
        "--kubeconfig=$(Get-KubeConfig $Mount)"
    )
    if ($network.Type -eq 'Overlay') {
        $endpoint = Wait-For "the HNS endpoint ${NetworkName}_ep" $Seconds {
            Get-HnsEndpoint | Where-Object { $_.Name -eq "${NetworkName}_ep" } | Select-Object -First 1
        }
        $arguments += "--source-vip=$($endpoint.IPAddress)"
    }
    $gates = Get-Setting 'KUBE_PROXY_FEATURE_GATES' ''
    if ($gates) { $arguments += "--feature-gates=$gates" }
    return $arguments
}

$mount = (Get-Setting 'CONTAINER_SANDBOX_MOUNT_POINT' 'C:/hpc').Replace('\', '/').TrimEnd('/')
$networkName = Get-Setting 'KUBE_NETWORK' 'Calico'
$arguments = Get-ProxyArguments $mount $networkName ([int](Get-Setting 'KUBE_PROXY_WAIT_SECONDS' '600'))

# Load balancers of a kube-proxy that ran before would be taken for its own.
Get-HnsPolicyList | Remove-HnsPolicyList

# kube-proxy reads the name of the network from here.
$env:KUBE_NETWORK = $networkName
Write-Host "starting kube-proxy $($arguments -join ' ')"
& "$mount/kube-proxy/kube-proxy.exe" @arguments
exit $LASTEXITCODE
