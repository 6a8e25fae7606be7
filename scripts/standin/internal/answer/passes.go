package answer

// passes lists the components that the stand-in knows, by configuration pass.
func passes() map[string]map[string]func(*reader, *node, *Answer) {
	type components = map[string]func(*reader, *node, *Answer)
	return map[string]components{
		"windowsPE": {
			"Microsoft-Windows-International-Core-WinPE": readInternational,
			"Microsoft-Windows-PnpCustomizationsWinPE":   readDriverPaths,
			"Microsoft-Windows-Setup":                    readSetup,
		},
		"offlineServicing": {
			"Microsoft-Windows-LUA-Settings": func(r *reader, n *node, a *Answer) {
				a.EnableLUA = r.boolean(n, "EnableLUA", true)
			},
		},
		"generalize": {
			"Microsoft-Windows-Security-SPP": stored("SkipRearm"),
		},
		"specialize": {
			"Microsoft-Windows-Deployment":                           readDeployment,
			"Microsoft-Windows-IE-ESC":                               stored("IEHardenAdmin", "IEHardenUser"),
			"Microsoft-Windows-International-Core":                   readInternational,
			"Microsoft-Windows-Security-SPP-UX":                      stored("SkipAutoActivation"),
			"Microsoft-Windows-ServerManager-SvrMgrNc":               stored("DoNotOpenServerManagerAtLogon"),
			"Microsoft-Windows-Shell-Setup":                          readShellSpecialize,
			"Microsoft-Windows-SQMApi":                               stored("CEIPEnabled"),
			"Networking-MPSSVC-Svc":                                  readFirewall,
			"Microsoft-Windows-TerminalServices-LocalSessionManager": stored("fDenyTSConnections"),
		},
		"oobeSystem": {
			"Microsoft-Windows-International-Core":  readInternational,
			"Microsoft-Windows-Shell-Setup":         readShellOOBE,
			"Microsoft-Windows-WinRE-RecoveryAgent": stored("UninstallWindowsRE"),
		},
	}
}

// stored returns a reader of settings that are kept and have no effect here.
func stored(names ...string) func(*reader, *node, *Answer) {
	return func(r *reader, n *node, a *Answer) {
		for _, name := range names {
			if r.hasChild(n, name) {
				a.Settings[n.path+"/"+name] = r.text(n, name)
			}
		}
	}
}

func (r *reader) hasChild(n *node, name string) bool {
	for _, c := range n.children {
		if c.name == name {
			return true
		}
	}
	return false
}

func readInternational(r *reader, n *node, a *Answer) {
	if ui := r.child(n, "SetupUILanguage"); ui != nil {
		a.Locale["SetupUILanguage"] = r.text(ui, "UILanguage")
		r.choice(ui, "WillShowUI", "OnError", "Always", "Never")
		r.done(ui)
	}
	for _, name := range []string{"InputLocale", "SystemLocale", "UILanguage", "UILanguageFallback", "UserLocale"} {
		if r.hasChild(n, name) {
			a.Locale[name] = r.text(n, name)
		}
	}
}

// readDriverPaths knows where drivers may be; a path that is not there does no
// harm to Setup either.
func readDriverPaths(r *reader, n *node, a *Answer) {
	paths := r.child(n, "DriverPaths")
	if paths == nil {
		return
	}
	for _, item := range r.list(paths, "PathAndCredentials") {
		key := item.attrs["wcm:keyValue"]
		delete(item.attrs, "wcm:keyValue")
		a.Settings[n.path+"/DriverPaths/"+key] = r.text(item, "Path")
		r.done(item)
	}
}

func readDeployment(r *reader, n *node, a *Answer) {
	if extend := r.child(n, "ExtendOSPartition"); extend != nil {
		a.Settings[n.path+"/ExtendOSPartition/Extend"] = r.text(extend, "Extend")
		r.done(extend)
	}
	run := r.child(n, "RunSynchronous")
	for _, item := range r.list(run, "RunSynchronousCommand") {
		a.SpecializeRun = append(a.SpecializeRun, Command{Order: r.number(item, "Order"), Line: r.text(item, "Path")})
		r.text(item, "Description")
		r.choice(item, "WillReboot", "Never", "Always", "OnRequest")
		r.done(item)
	}
	sortByOrder(r, n, a.SpecializeRun, func(c Command) int { return c.Order })
}

func readFirewall(r *reader, n *node, a *Answer) {
	for _, item := range r.list(r.child(n, "FirewallGroups"), "FirewallGroup") {
		group := FirewallGroup{Name: item.attrs["wcm:keyValue"]}
		delete(item.attrs, "wcm:keyValue")
		group.Active = r.boolean(item, "Active", false)
		group.Group = r.text(item, "Group")
		group.Profile = r.choice(item, "Profile", "all", "domain", "private", "public")
		r.done(item)
		a.FirewallGroups = append(a.FirewallGroups, group)
	}
}

func readShellSpecialize(r *reader, n *node, a *Answer) {
	a.ComputerName = r.text(n, "ComputerName")
	a.TimeZone = r.text(n, "TimeZone")
	stored("RegisteredOwner", "RegisteredOrganization", "CopyProfile", "ProductKey")(r, n, a)
	if len(a.ComputerName) > 15 {
		r.fail(n, "ComputerName %q has more than 15 characters", a.ComputerName)
	}
}

func readShellOOBE(r *reader, n *node, a *Answer) {
	if oobe := r.child(n, "OOBE"); oobe != nil {
		stored("HideEULAPage", "HideLocalAccountScreen", "HideOEMRegistrationScreen", "HideOnlineAccountScreens",
			"HideWirelessSetupInOOBE", "NetworkLocation", "ProtectYourPC", "SkipMachineOOBE", "SkipUserOOBE")(r, oobe, a)
		r.done(oobe)
	}
	if zone := r.text(n, "TimeZone"); zone != "" {
		a.TimeZone = zone
	}
	stored("RegisteredOwner", "RegisteredOrganization")(r, n, a)
	if users := r.child(n, "UserAccounts"); users != nil {
		readAccounts(r, users, a)
	}
	if logon := r.child(n, "AutoLogon"); logon != nil {
		a.AutoLogon = AutoLogon{Enabled: r.boolean(logon, "Enabled", false), User: r.text(logon, "Username"), Count: r.number(logon, "LogonCount")}
		r.text(logon, "Domain")
		if password := r.child(logon, "Password"); password != nil {
			r.password(password)
		}
		r.done(logon)
	}
	commands := r.child(n, "FirstLogonCommands")
	for _, item := range r.list(commands, "SynchronousCommand") {
		command := Command{Order: r.number(item, "Order"), Line: r.text(item, "CommandLine")}
		r.text(item, "Description")
		if r.boolean(item, "RequiresUserInput", false) {
			r.fail(item, "RequiresUserInput is true: nobody is there")
		}
		if len(command.Line) > 1024 {
			r.fail(item, "the command line has %d characters; 1024 are allowed", len(command.Line))
		}
		r.done(item)
		a.FirstLogon = append(a.FirstLogon, command)
	}
	sortByOrder(r, n, a.FirstLogon, func(c Command) int { return c.Order })
}

func readAccounts(r *reader, n *node, a *Answer) {
	if admin := r.child(n, "AdministratorPassword"); admin != nil {
		password := r.password(admin)
		a.Administrator = &password
	}
	if local := r.child(n, "LocalAccounts"); local != nil {
		for _, item := range r.list(local, "LocalAccount") {
			account := Account{Name: r.text(item, "Name"), Groups: splitGroups(r.text(item, "Group"))}
			r.text(item, "DisplayName")
			r.text(item, "Description")
			if password := r.child(item, "Password"); password != nil {
				account.Password = r.password(password)
			}
			if account.Name == "" {
				r.fail(item, "the account has no name")
			}
			r.done(item)
			a.Accounts = append(a.Accounts, account)
		}
	}
	r.done(n)
}
