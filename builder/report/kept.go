package report

import "fmt"

// Kept describes a machine that was left running after its guest failed, so
// that somebody can look into it. It holds no secret: those are in Secrets.
type Kept struct {
	Name        string `json:"name"`
	Reason      string `json:"reason"`                // the failure
	PID         int    `json:"pid"`                   // the process that holds the machine
	WinRM       string `json:"winrm,omitempty"`       // a URL, https://127.0.0.1:PORT/wsman
	Certificate string `json:"certificate,omitempty"` // SHA-256 of the only right one, in hexadecimal; with https
	Console     string `json:"console,omitempty"`     // the screen, vnc://127.0.0.1:PORT
	Account     string `json:"account"`
	Secrets     string `json:"secrets"` // the file with the passwords, for the owner's eyes, gone when the machine is
	RunDir      string `json:"runDir"`
	SerialLog   string `json:"serialLog"`
	Screenshot  string `json:"screenshot,omitempty"`
}

// Lines tells people how to get in.
func (k *Kept) Lines() []string {
	lines := []string{
		"failed: " + k.Reason,
		fmt.Sprintf("The machine %q is kept running for a look, until Ctrl-C (or SIGTERM to process %d); then it is removed.", k.Name, k.PID),
	}
	add := func(what, value string) {
		if value != "" {
			lines = append(lines, fmt.Sprintf("  %-11s %s", what, value))
		}
	}
	winrm := k.WinRM
	if k.Certificate != "" {
		winrm += " (Basic; self-signed certificate, SHA-256 " + k.Certificate + ")"
	} else if winrm != "" {
		winrm += " (NTLM)"
	}
	add("WinRM", winrm)
	add("console", k.Console)
	add("account", k.Account)
	add("passwords", "in "+k.Secrets)
	add("run folder", k.RunDir)
	add("serial log", k.SerialLog)
	add("screenshot", k.Screenshot)
	return lines
}
