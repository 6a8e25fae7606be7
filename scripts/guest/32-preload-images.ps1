# Container images that lie in the box already, in the namespace where kubelet
# looks for them.
#   images   [{name, digest, file}]: an image's full name, the digest that
#            containerd must know it by, and its archive below payload\images
#   unpack   default true: also unpack the layers, so that the first container starts at once
#   pinned   default []: names that kubelet's garbage collection must leave alone

$script:Ctr = 'C:\Program Files\containerd\ctr.exe'
$script:Namespace = 'k8s.io'
# kubelet removes no image that has it (containerd's docs/cri/image-pull.md names
# the label of containerd's CRI plugin).
$script:PinnedLabel = 'io.cri-containerd.pinned'

function Invoke-Ctr([string[]]$ArgumentList) {
    (Invoke-WboxProgram -Path $Ctr -ArgumentList (@('--namespace', $Namespace) + $ArgumentList)).Output
}

# What containerd has: name -> a row with digest and labels.
function Get-ImageRows {
    $rows = @{}
    # REF TYPE DIGEST SIZE PLATFORMS LABELS; a size is two words.
    foreach ($line in @("$(Invoke-Ctr @('images', 'list'))" -split "`r?`n" | Select-Object -Skip 1)) {
        $columns = @($line.Trim() -split '\s+')
        if ($columns.Count -lt 4) { continue }
        $rows[$columns[0]] = [pscustomobject]@{ Digest = $columns[2]; Line = $line }
    }
    $rows
}

function Get-WantedImages($Context) { @(Get-WboxParameter $Context.Parameters 'images' -Default @()) }

function Get-PinnedNames($Context) { @(Get-WboxParameter $Context.Parameters 'pinned' -Default @()) }

# What is wrong with an image, or nothing.
function Get-ImageFault($Image, $Rows, [string[]]$Pinned) {
    $row = $Rows[$Image.name]
    if ($null -eq $row) { return "there is no image $($Image.name)" }
    if ($row.Digest -cne $Image.digest) { return "the image $($Image.name) is $($row.Digest), not $($Image.digest)" }
    if ($Pinned -ccontains $Image.name -and $row.Line -notlike "*$PinnedLabel=pinned*") { "the image $($Image.name) is not pinned" }
}

function Test-State($Context) {
    $wanted = @(Get-WantedImages $Context)
    if ($wanted.Count -eq 0) { return New-WboxResult -Facts @{ images = @() } }
    if (-not (Test-Path -LiteralPath $Ctr)) { return New-WboxResult -Missing @("there is no $Ctr") }
    $rows = Get-ImageRows
    $pinned = @(Get-PinnedNames $Context)
    $missing = @($wanted | ForEach-Object { Get-ImageFault $_ $rows $pinned })
    New-WboxResult -Missing $missing -Facts @{ images = @($wanted | Where-Object { $rows.ContainsKey($_.name) } | ForEach-Object { "$($_.name) $($rows[$_.name].Digest)" }) }
}

function Set-State($Context) {
    $wanted = @(Get-WantedImages $Context)
    if ($wanted.Count -eq 0) { return }
    if (-not (Test-Path -LiteralPath $Ctr)) { throw "there is no ${Ctr}: images are imported by containerd" }
    # The service runs some seconds before it answers.
    $answers = Wait-Wbox -TimeoutSeconds 120 -Until { try { Invoke-Ctr @('version') | Out-Null; $true } catch { Write-WboxLog $_.Exception.Message; $false } }
    if (-not $answers) { throw 'containerd does not answer' }
    $rows = Get-ImageRows
    $pinned = @(Get-PinnedNames $Context)
    foreach ($image in $wanted) {
        $row = $rows[$image.name]
        if ($null -eq $row -or $row.Digest -cne $image.digest) {
            if ("$($image.file)" -notmatch '^[A-Za-z0-9][A-Za-z0-9._-]*$') { throw "the archive's name $($image.file) is none" }
            $file = Join-Path (Join-Path $Context.Payload 'images') $image.file
            if (-not (Test-Path -LiteralPath $file)) { throw "there is no $file" }
            Write-WboxLog "importing $($image.name)"
            $options = @('images', 'import')
            if (-not [bool](Get-WboxParameter $Context.Parameters 'unpack' -Default $true)) { $options += '--no-unpack' }
            Invoke-Ctr ($options + $file) | Out-Null
        }
        if ($pinned -ccontains $image.name) { Invoke-Ctr @('images', 'label', $image.name, "$PinnedLabel=pinned") | Out-Null }
    }
}
