package install

import (
	"crypto/rand"
	"strings"
	"time"

	"github.com/wbox-dev/wbox/scripts/standin/internal/answer"
	"github.com/wbox-dev/wbox/scripts/standin/internal/state"
	"github.com/wbox-dev/wbox/scripts/standin/internal/wim"
)

// firstState is what the installed system starts with.
func firstState(a *answer.Answer, release string, image wim.Image, plan []Planned, guids map[int]string, now time.Time) state.State {
	s := state.State{
		Release: release, Build: image.Build, Revision: image.Revision, Image: image.Name,
		Edition: image.Edition, Installation: image.Installation, Installed: now.UTC(),
		ComputerName: a.ComputerName, TimeZone: a.TimeZone, Settings: a.Settings, Letters: map[string]int{},
	}
	if s.ComputerName == "" || s.ComputerName == "*" {
		s.ComputerName = madeUpName()
	}
	admin := state.Account{Name: "Administrator", Groups: []string{"Administrators"}, Disabled: a.Administrator == nil}
	if a.Administrator != nil {
		admin.Password = a.Administrator.Value
	}
	s.Accounts = []state.Account{admin, {Name: "Guest", Groups: []string{"Guests"}, Disabled: true}}
	for _, account := range a.Accounts {
		s.Accounts = append(s.Accounts, state.Account{Name: account.Name, Password: account.Password.Value, Groups: account.Groups})
	}
	if a.AutoLogon.Enabled {
		s.AutoLogon = a.AutoLogon.User
	}
	for _, command := range a.SpecializeRun {
		s.Commands = append(s.Commands, state.Command{Pass: "specialize", Line: command.Line})
	}
	for _, command := range a.FirstLogon {
		s.Commands = append(s.Commands, state.Command{Pass: "oobeSystem", Line: command.Line})
	}
	for _, p := range plan {
		letter := p.Letter
		if p.Number == a.Image.PartitionID {
			letter = "C"
		}
		if letter != "" {
			s.Letters[letter] = p.Number
		}
		s.Volumes = append(s.Volumes, state.Volume{Number: p.Number, Type: p.Type, Format: p.Format, Label: p.Label, GUID: guids[p.Number]})
	}
	return s
}

// madeUpName returns a computer name as Setup makes one up: WIN- and eleven
// letters and digits.
func madeUpName() string {
	return "WIN-" + strings.ToUpper(rand.Text()[:11])
}
