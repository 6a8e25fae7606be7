# Volumes and partitions: the real ones of the disk, through the agent.

# All volumes: those of partitions that are not hidden, and the CDs.
function Get-StandinVolume {
    $info = Invoke-StandinAgent info
    $letters = @{}
    foreach ($l in $info.letters.PSObject.Properties) { $letters[[int]$l.Value] = $l.Name }
    foreach ($p in Invoke-StandinAgent partitions) {
        if (-not $p.fileSystem -or (Test-StandinAttribute $p 62)) { continue }
        [pscustomobject]@{ DriveLetter = "$($letters[[int]$p.number])"; FileSystemLabel = $p.label; FileSystem = $p.fileSystem; FileSystemType = $p.fileSystem; Size = $p.size; Number = [int]$p.number; Kind = 3; DriveType = 'Fixed' }
    }
    if ($info.seed) { [pscustomobject]@{ DriveLetter = 'D'; FileSystemLabel = 'WBOXSEED'; FileSystem = 'CDFS'; FileSystemType = 'CDFS'; Size = 0; Number = 0; Kind = 5; DriveType = 'CD-ROM' } }
}

function Test-StandinAttribute {
    param($Partition, [int]$Bit)
    [bool]([Numerics.BigInteger]$Partition.attributes -band [Numerics.BigInteger]::Pow(2, $Bit))
}

function Get-StandinPartition {
    $info = Invoke-StandinAgent info
    $letters = @{}
    foreach ($l in $info.letters.PSObject.Properties) { $letters[[int]$l.Value] = $l.Name }
    foreach ($p in Invoke-StandinAgent partitions) {
        [pscustomobject]@{
            DiskNumber = 0; PartitionNumber = [int]$p.number; Guid = "{$($p.guid.ToLowerInvariant())}"; GptType = "{$($p.type.ToLowerInvariant())}"
            # Windows has the character 0 where there is no letter.
            DriveLetter = $(if ($letters[[int]$p.number]) { [char]$letters[[int]$p.number] } else { [char]0 })
            IsReadOnly = (Test-StandinAttribute $p 60); IsHidden = (Test-StandinAttribute $p 62); NoDefaultDriveLetter = (Test-StandinAttribute $p 63)
            Offset = $p.offset; Size = $p.size; Attributes = $p.attributes
        }
    }
}

function Standin-Get-Volume {
    param($p)
    $all = @(Get-StandinVolume)
    if ($p.ContainsKey('FileSystemLabel')) {
        foreach ($label in $p.FileSystemLabel) {
            $found = @($all | Where-Object { $_.FileSystemLabel -eq $label })
            if ($found.Count) { $found } else { Write-StandinError "No MSFT_Volume objects found with property 'FileSystemLabel' equal to '$label'.  Verify the value of the property and retry." 'CmdletizationQuery_NotFound_FileSystemLabel' }
        }
    }
    elseif ($p.ContainsKey('DriveLetter')) { $all | Where-Object { $_.DriveLetter -and [char]$_.DriveLetter -in $p.DriveLetter } }
    elseif ($p.ContainsKey('Partition')) { $all | Where-Object { $_.Number -eq $p.Partition.PartitionNumber } }
    elseif (@($p.Keys | Where-Object { $_ -notin 'ErrorAction', 'Verbose' }).Count) { throw "the stand-in does not know Get-Volume with -$(@($p.Keys) -join ', -')" }
    else { $all }
}

function Standin-Get-Partition {
    param($p)
    $all = @(Get-StandinPartition)
    if ($p.ContainsKey('Volume')) { return $all | Where-Object { $_.PartitionNumber -eq $p.Volume.Number } }
    if ($p.ContainsKey('DriveLetter')) { $all = @($all | Where-Object { $_.DriveLetter -in $p.DriveLetter }) }
    if ($p.ContainsKey('DiskNumber')) { $all = @($all | Where-Object { $_.DiskNumber -in $p.DiskNumber }) }
    if ($p.ContainsKey('PartitionNumber')) { $all = @($all | Where-Object { $_.PartitionNumber -in $p.PartitionNumber }) }
    if ($all.Count -eq 0) { Write-StandinError 'No MSFT_Partition objects found. Verify the value of the property and retry.' 'CmdletizationQuery_NotFound' }
    $all
}

# The one partition that a command names by number or object.
function Find-StandinPartition {
    param($p)
    $number = if ($p.ContainsKey('InputObject')) { @($p.InputObject)[0].PartitionNumber } else { @($p.PartitionNumber)[0] }
    $disk = if ($p.ContainsKey('DiskNumber')) { @($p.DiskNumber)[0] } else { 0 }
    $found = @(Get-StandinPartition | Where-Object { $_.DiskNumber -eq $disk -and $_.PartitionNumber -eq $number })
    if ($found.Count -ne 1) { throw "No MSFT_Partition objects found with property 'PartitionNumber' equal to '$number'." }
    $found[0]
}

function Standin-Set-Partition {
    param($p)
    $partition = Find-StandinPartition $p
    $bits = [Numerics.BigInteger]$partition.Attributes
    foreach ($a in @{ Name = 'IsReadOnly'; Bit = 60 }, @{ Name = 'IsHidden'; Bit = 62 }, @{ Name = 'NoDefaultDriveLetter'; Bit = 63 }) {
        if (-not $p.ContainsKey($a.Name)) { continue }
        $one = [Numerics.BigInteger]::Pow(2, $a.Bit)
        $bits = if ($p[$a.Name]) { $bits -bor $one } elseif (($bits -band $one) -ne 0) { $bits - $one } else { $bits }
    }
    foreach ($k in 'NewDriveLetter', 'GptType', 'IsActive', 'MbrType', 'IsOffline', 'IsShadowCopy', 'IsDAX') { if ($p.ContainsKey($k)) { throw "the stand-in does not know Set-Partition -$k" } }
    Invoke-StandinAgent partitions attributes "$($partition.PartitionNumber)" "$bits" | Out-Null
}

function Standin-Add-PartitionAccessPath {
    param($p)
    if ($p.ContainsKey('AssignDriveLetter')) { throw 'the stand-in mounts partitions into folders only' }
    $partition = Find-StandinPartition $p
    $folder = Resolve-StandinPath $p.AccessPath
    if (-not [IO.Directory]::Exists($folder)) { throw 'The requested access path is not valid.' }
    if (@([IO.Directory]::GetFileSystemEntries($folder)).Count) { throw 'The requested access path is not valid. The folder is not empty.' }
    Invoke-StandinAgent mount "$($partition.PartitionNumber)" $p.AccessPath | Out-Null
}

function Standin-Remove-PartitionAccessPath {
    param($p)
    Find-StandinPartition $p | Out-Null
    if ($p.AccessPath -match '^[A-Za-z]:\\?$') { throw 'the stand-in gives the payload partition no drive letter' }
    Invoke-StandinAgent unmount $p.AccessPath | Out-Null
}
