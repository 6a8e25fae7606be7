# Local accounts and groups: the agent's accounts, by which WinRM lets people
# in, and beside them what only Windows shows.

# Everything known of all accounts.
function Get-StandinAccount {
    foreach ($a in Invoke-StandinAgent accounts) {
        $more = (Get-StandinSection 'accounts')[$a.name]
        if (-not $more) {
            Update-StandinSection 'accounts' {
                param($s)
                if (-not $s.ContainsKey('-')) { $s['-'] = @{ Machine = "S-1-5-21-$(Get-Random -Minimum 100000000)-$(Get-Random -Minimum 100000000)-$(Get-Random -Minimum 100000000)"; Next = 1000 } }
                $rid = switch ($a.name) { 'Administrator' { 500 } 'Guest' { 501 } default { $s['-'].Next; $s['-'].Next++ } }
                # Windows lets passwords of new accounts expire after 42 days.
                $s[$a.name] = @{ SID = "$($s['-'].Machine)-$rid"; Expires = ($rid -ge 1000); Description = '' }
            }
            $more = (Get-StandinSection 'accounts')[$a.name]
        }
        [pscustomobject]@{ Name = $a.name; SID = $more.SID; Enabled = -not ($a.PSObject.Properties['disabled'] -and $a.disabled); Description = $more.Description; PasswordExpires = $(if ($more.Expires) { (Get-Date).AddDays(42) }); Agent = $a }
    }
}

function Hide-StandinAgent { process { $_ | Select-Object -Property * -ExcludeProperty Agent } }

function Find-StandinAccount {
    param($p)
    $all = @(Get-StandinAccount)
    if ($p.ContainsKey('InputObject')) { $p = @{ Name = @($p.InputObject | ForEach-Object { $_.Name }) } }
    if ($p.ContainsKey('SID')) {
        foreach ($sid in $p.SID) {
            $found = @($all | Where-Object { $_.SID -eq "$sid" })
            if ($found.Count) { $found } else { Write-StandinError "User $sid was not found." 'UserNotFound' }
        }
        return
    }
    foreach ($name in $p.Name) {
        $found = @($all | Where-Object { $_.Name -like $name })
        if ($found.Count -or [WildcardPattern]::ContainsWildcardCharacters("$name")) { $found } else { Write-StandinError "User $name was not found." 'UserNotFound' }
    }
}

function Set-StandinAccount {
    param($Account)
    Invoke-StandinAgent accounts set (ConvertTo-Json -InputObject $Account -Compress -Depth 4) | Out-Null
}

function ConvertFrom-StandinSecret { param($Secret) (New-Object Net.NetworkCredential '', $Secret).Password }

function Standin-Get-LocalUser { param($p) if (-not $p.ContainsKey('Name') -and -not $p.ContainsKey('SID')) { $p = @{ Name = '*' } }; Find-StandinAccount $p | Hide-StandinAgent }

function Standin-New-LocalUser {
    param($p)
    if (@(Get-StandinAccount | Where-Object { $_.Name -eq $p.Name }).Count) { Write-StandinError "User $($p.Name) already exists." 'UserExists' 'ResourceExists'; return }
    if ($p.Name.Length -gt 20) { throw "Cannot validate argument on parameter 'Name'. The character length of the $($p.Name.Length) argument is too long." }
    $password = if ($p.ContainsKey('Password')) { ConvertFrom-StandinSecret $p.Password } else { '' }
    Set-StandinAccount @{ name = $p.Name; password = $password; groups = @(); disabled = [bool]$p.Disabled }
    Get-StandinAccount | Out-Null
    Update-StandinSection 'accounts' { param($s) $s[$p.Name].Expires = -not $p.PasswordNeverExpires; $s[$p.Name].Description = "$($p.Description)" }
    Standin-Get-LocalUser @{ Name = $p.Name }
}

function Standin-Set-LocalUser {
    param($p)
    foreach ($a in Find-StandinAccount $p) {
        if ($p.ContainsKey('Password')) { $a.Agent.password = ConvertFrom-StandinSecret $p.Password; Set-StandinAccount $a.Agent }
        Update-StandinSection 'accounts' {
            param($s)
            if ($p.ContainsKey('PasswordNeverExpires')) { $s[$a.Name].Expires = -not $p.PasswordNeverExpires }
            if ($p.ContainsKey('Description')) { $s[$a.Name].Description = $p.Description }
        }
    }
}

function Standin-Enable-LocalUser { param($p) foreach ($a in Find-StandinAccount $p) { $a.Agent | Add-Member -NotePropertyName disabled -NotePropertyValue $false -Force; Set-StandinAccount $a.Agent } }
function Standin-Disable-LocalUser { param($p) foreach ($a in Find-StandinAccount $p) { $a.Agent | Add-Member -NotePropertyName disabled -NotePropertyValue $true -Force; Set-StandinAccount $a.Agent } }

function Standin-Remove-LocalUser {
    param($p)
    foreach ($a in @(Find-StandinAccount $p)) {
        if ($a.SID -match '-50[01]$') { throw "An unspecified error occurred: error code = 1371. The built-in account $($a.Name) can not be removed." }
        Invoke-StandinAgent accounts remove $a.Name | Out-Null
        Update-StandinSection 'accounts' { param($s) $s.Remove($a.Name) }
    }
}

# The group that a command names by name or identifier.
function Get-StandinGroup {
    param($p)
    $groups = @{ 'Administrators' = 'S-1-5-32-544'; 'Users' = 'S-1-5-32-545'; 'Guests' = 'S-1-5-32-546' }
    foreach ($name in $groups.Keys) {
        if (($p.ContainsKey('SID') -and "$($p.SID)" -eq $groups[$name]) -or ($p.ContainsKey('Group') -and "$($p.Group)" -eq $name) -or ($p.ContainsKey('Name') -and "$($p.Name)" -eq $name)) { return $name }
    }
    throw "Group $($p.SID)$($p.Group)$($p.Name) was not found."
}

function Get-StandinGroupNames { param($Account) @($Account.Agent.PSObject.Properties['groups'] | Where-Object { $_ } | ForEach-Object { $_.Value } | Where-Object { $_ }) }

function Standin-Get-LocalGroupMember {
    param($p)
    $group = Get-StandinGroup $p
    Get-StandinAccount | Where-Object { (Get-StandinGroupNames $_) -contains $group } | ForEach-Object { [pscustomobject]@{ Name = "$env:COMPUTERNAME\$($_.Name)"; SID = $_.SID; ObjectClass = 'User'; PrincipalSource = 'Local' } }
}

function Standin-Add-LocalGroupMember {
    param($p)
    $group = Get-StandinGroup $p
    foreach ($m in $p.Member) {
        foreach ($a in Find-StandinAccount @{ Name = "$m" }) {
            $names = @(Get-StandinGroupNames $a)
            if ($names -contains $group) { Write-StandinError "$m is already a member of group $group." 'MemberExists' 'ResourceExists'; continue }
            $a.Agent | Add-Member -NotePropertyName groups -NotePropertyValue @($names + $group) -Force
            Set-StandinAccount $a.Agent
        }
    }
}
