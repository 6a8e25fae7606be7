package fallback

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wbox-dev/wbox/scripts/standin/internal/machine"
	"github.com/wbox-dev/wbox/scripts/standin/internal/state"
)

func testReady(_ context.Context, env *Env, _ params) (string, error) {
	s := env.State.Get()
	if len(s.Commands) > 0 {
		return "Windows Setup is not complete", nil
	}
	for name, how := range s.Features {
		if how == "pending" {
			return name + " waits for a reboot", nil
		}
	}
	return "", nil
}

func testWinRM(_ context.Context, env *Env, _ params) (string, error) {
	w := env.State.Get().WinRM
	switch {
	case !w.HTTPS:
		return "there is no HTTPS listener", nil
	case !w.Basic:
		return "Basic authentication is off", nil
	}
	return "", nil
}

func setWinRM(_ context.Context, env *Env, p params) (bool, error) {
	name, password := "winrm.pfx", ""
	if err := errors.Join(p.get("pfx", &name), p.get("pfxPassword", &password)); err != nil {
		return false, err
	}
	data, err := os.ReadFile(filepath.Join(env.Seed, "payload", name))
	if err != nil {
		return false, fmt.Errorf("reading the certificate: %w", err)
	}
	w := env.State.Get().WinRM
	w.HTTPS, w.Basic = true, true
	return false, env.WinRM(w, data, password)
}

// payloadPartition returns the partition with the label, hidden or not; nil
// where there is none.
func payloadPartition(ctx context.Context, env *Env, label string) (*machine.Partition, error) {
	partitions, err := env.Machine.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range partitions {
		if p.FileSystem == "FAT32" && p.Label == label {
			return &p, nil
		}
	}
	return nil, nil
}

const outOfSight = machine.ReadOnly | machine.Hidden | machine.NoDriveLetter

func testPrepared(ctx context.Context, env *Env, p params) (string, error) {
	label := "WBOX"
	if err := p.get("payloadLabel", &label); err != nil || label == "" {
		return "", err
	}
	part, err := payloadPartition(ctx, env, label)
	switch {
	case err != nil:
		return "", err
	case part == nil:
		return "there is no partition " + label, nil
	case part.Attributes&outOfSight != outOfSight:
		return "no partition is hidden, read-only and without a drive letter", nil
	}
	return "", nil
}

func setPrepared(ctx context.Context, env *Env, p params) (bool, error) {
	label := "WBOX"
	if err := p.get("payloadLabel", &label); err != nil || label == "" {
		return false, err
	}
	part, err := payloadPartition(ctx, env, label)
	if err != nil {
		return false, err
	}
	if part == nil {
		return false, fmt.Errorf("there is no partition %s", label)
	}
	return false, env.Machine.SetAttributes(ctx, part.Number, part.Attributes|outOfSight)
}

func features(p params) ([]string, error) {
	var names, dism []string
	err := errors.Join(p.get("features", &names), p.get("dism", &dism))
	return slices.Concat(names, dism), err
}

func testFeatures(_ context.Context, env *Env, p params) (string, error) {
	names, err := features(p)
	if err != nil {
		return "", err
	}
	s := env.State.Get()
	var missing []string
	for _, name := range names {
		switch s.Features[name] {
		case "installed":
		case "pending":
			missing = append(missing, name+" waits for a reboot")
		default:
			missing = append(missing, name+" is Available")
		}
	}
	return strings.Join(missing, "; "), nil
}

// setFeatures installs what is missing; it is active after a reboot.
func setFeatures(_ context.Context, env *Env, p params) (bool, error) {
	names, err := features(p)
	if err != nil {
		return false, err
	}
	reboot := false
	err = env.State.Change(func(s *state.State) error {
		if s.Features == nil {
			s.Features = map[string]string{}
		}
		for _, name := range names {
			if s.Features[name] != "installed" {
				s.Features[name], reboot = "pending", true
			}
		}
		return nil
	})
	return reboot, err
}

// setNode has the payload copied now and at every boot.
func setNode(ctx context.Context, env *Env, _ params) (bool, error) {
	if err := env.State.Change(mark("50-prepare-node")); err != nil {
		return false, err
	}
	return false, env.State.Change(func(s *state.State) error { s.CopyAtBoot = true; return nil })
}

func testSealed(_ context.Context, env *Env, p params) (string, error) {
	account, bake := "vagrant", ""
	if err := errors.Join(p.get("account", &account), p.get("bakeAccount", &bake)); err != nil {
		return "", err
	}
	s := env.State.Get()
	var missing []string
	if a := s.Account(account); a == nil || a.Disabled {
		missing = append(missing, "there is no account "+account)
	}
	if bake != "" && s.Account(bake) != nil {
		missing = append(missing, "the bake's account "+bake+" is still there")
	}
	if !s.WinRM.HTTP || s.WinRM.HTTPS || s.WinRM.Basic {
		missing = append(missing, "WinRM is not the box's")
	}
	return strings.Join(missing, "; "), nil
}

// setSealed makes the box's account and way in; the rest happens once the caller
// is gone.
func setSealed(_ context.Context, env *Env, p params) (bool, error) {
	account, password, bake := "vagrant", "vagrant", ""
	if err := errors.Join(p.get("account", &account), p.get("password", &password), p.get("bakeAccount", &bake)); err != nil {
		return false, err
	}
	if strings.EqualFold(account, bake) {
		return false, fmt.Errorf("the box's account can't have the name of the bake's, %s", bake)
	}
	err := env.State.Change(func(s *state.State) error {
		if a := s.Account(account); a != nil {
			a.Password, a.Disabled = password, false
			return nil
		}
		s.Accounts = append(s.Accounts, state.Account{Name: account, Password: password, Groups: []string{"Administrators"}})
		return nil
	})
	if err != nil {
		return false, err
	}
	w := env.State.Get().WinRM
	w.HTTP, w.AllowUnencrypted = true, false
	if err := env.WinRM(w, nil, ""); err != nil {
		return false, err
	}
	env.Seal(bake)
	return false, nil
}
