package state

import (
	"errors"
	"testing"
)

func TestStore(t *testing.T) {
	c := t.TempDir()
	if err := Create(c, State{Release: "2022", Accounts: []Account{{Name: "wbox", Password: "x"}}}); err != nil {
		t.Fatal(err)
	}
	store, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Change(func(s *State) error { s.Account("WBOX").Password = "y"; return nil }); err != nil {
		t.Fatal(err)
	}
	again, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Get(); got.Account("wbox").Password != "y" || got.Account("other") != nil {
		t.Errorf("after reopening: %+v", got)
	}
}

func TestFailedChangeLeavesState(t *testing.T) {
	c := t.TempDir()
	if err := Create(c, State{Accounts: []Account{{Name: "wbox"}}}); err != nil {
		t.Fatal(err)
	}
	store, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("refused")
	err = store.Change(func(s *State) error { s.Accounts[0].Name = "changed"; return refused })
	if !errors.Is(err, refused) || store.Get().Accounts[0].Name != "wbox" {
		t.Errorf("%v, %+v", err, store.Get())
	}
	copied := store.Get()
	copied.Accounts[0].Name = "changed"
	if store.Get().Accounts[0].Name != "wbox" {
		t.Error("Get hands out the state itself")
	}
}

func TestOpenRefuses(t *testing.T) {
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("opened a state that is not there")
	}
}
