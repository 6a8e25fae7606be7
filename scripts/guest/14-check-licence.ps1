# What licence this Windows has and, where that is asked for, activating an
# evaluation. An activation that fails is no failure of this script: it notes
# why, and what days are left is for the host to reckon.
#   activate  optional: true = try to activate an evaluation; the one thing
#             among our scripts that uses the network
#   attempts  optional, default 3

$script:OwnKey = 'HKLM:\SOFTWARE\wbox'
$script:VersionKey = 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion'
# Windows, among all that the licensing service looks after.
$script:Application = '55c92734-d682-4d71-983e-d6ec3f16059f'
$script:Licensed = 1
$script:Pause = 15 # seconds between two attempts: a fresh network comes up late
# A service that hangs ends an attempt after so many seconds.
$script:Limit = 90

function Test-State($Context) {
    $licence = Get-Licence
    $tried = Get-WboxRegistryValue $OwnKey 'Activation'
    $asked = [bool](Get-WboxParameter $Context.Parameters 'activate' -Default $false)
    $missing = @()
    if ($asked -and $licence.Evaluation -and $licence.Status -ne $Licensed -and -not $tried) { $missing += 'the evaluation is not activated' }
    $facts = @{
        edition = $licence.Edition; evaluation = $licence.Evaluation; licenseStatus = $licence.Status
        gracePeriodRemaining = $licence.Remaining; now = [DateTime]::UtcNow.ToString('o')
        installed = (Get-CimInstance -ClassName Win32_OperatingSystem).InstallDate.ToUniversalTime().ToString('o')
        activation = "$tried"
    }
    if ($licence.Problem -and -not $tried) { $facts.activation = $licence.Problem }
    # Windows writes "never" as a date of the year 1601.
    if ($licence.Ends -and $licence.Ends.Year -gt 2000) { $facts.evaluationEndDate = $licence.Ends.ToUniversalTime().ToString('o') }
    New-WboxResult -Missing $missing -Facts $facts
}

function Set-State($Context) {
    $licence = Get-Licence
    if (-not (Get-WboxParameter $Context.Parameters 'activate' -Default $false) -or -not $licence.Evaluation -or $licence.Status -eq $Licensed) { return }
    $attempts = [int](Get-WboxParameter $Context.Parameters 'attempts' -Default 3)
    $outcome = 'no attempt was asked for'
    for ($i = 1; $i -le $attempts; $i++) {
        if ($i -gt 1) { Start-Sleep -Seconds $Pause }
        $outcome = Invoke-Activation
        Write-WboxLog "activation, attempt ${i}: $outcome"
        if ($outcome -eq 'activated') { break }
    }
    # Noted, so that the test after this does not ask for the next attempt.
    Set-WboxRegistryValue $OwnKey 'Activation' $outcome 'String'
}

# The licensing service's word on Windows. Where it has none that is the Problem.
function Get-Licence {
    $edition = "$(Get-WboxRegistryValue $VersionKey 'EditionID')"
    $licence = [pscustomobject]@{
        Edition = $edition; Evaluation = $edition -like '*Eval'; Status = -1; Remaining = 0; Ends = $null; Problem = ''
    }
    try { $product = Get-Product }
    catch { $licence.Problem = "the licensing service does not answer: $(Get-Reason $_)"; return $licence }
    if ($null -eq $product) { $licence.Problem = 'Windows has no licence that could be activated'; return $licence }
    if ("$($product.Description)" -like '*TIMEBASED_EVAL*') { $licence.Evaluation = $true }
    $licence.Status = [int]$product.LicenseStatus
    $licence.Remaining = [int]$product.GracePeriodRemaining
    $licence.Ends = $product.EvaluationEndDate
    $licence
}

# The product key that is installed makes one of the many products Windows'.
function Get-Product {
    @(Get-CimInstance -ClassName SoftwareLicensingProduct -Filter "ApplicationID='$Application' AND PartialProductKey IS NOT NULL" -OperationTimeoutSec $Limit) | Select-Object -First 1
}

# One attempt: 'activated', or why not. It is what "slmgr.vbs /ato" does, which
# would need VBScript and answers in the language of the system.
function Invoke-Activation {
    try {
        $product = Get-Product
        if ($null -eq $product) { return 'not activated: Windows has no licence that could be activated' }
        Invoke-CimMethod -InputObject $product -MethodName 'Activate' -OperationTimeoutSec $Limit | Out-Null
        $service = Get-CimInstance -ClassName SoftwareLicensingService -OperationTimeoutSec $Limit
        Invoke-CimMethod -InputObject $service -MethodName 'RefreshLicenseStatus' -OperationTimeoutSec $Limit | Out-Null
        $status = [int](Get-Product).LicenseStatus
        if ($status -eq $Licensed) { return 'activated' }
        "not activated: LicenseStatus is $status after it"
    }
    catch { "not activated: $(Get-Reason $_)" }
}

# An error of CIM on one line, with the number by which it is documented.
function Get-Reason($Record) {
    $text = ("$($Record.Exception.Message)" -split "`r?`n" | ForEach-Object { $_.Trim() } | Where-Object { $_ }) -join ' '
    $number = [regex]::Match("$($Record.FullyQualifiedErrorId)", '0x[0-9a-fA-F]{8}').Value
    if ($number -and $text -notlike "*$number*") { $text = "$text ($number)" }
    $text
}
