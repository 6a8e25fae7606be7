package media

import (
	"slices"
	"time"

	"github.com/wbox-dev/wbox/builder/iso"
)

// Row is one medium of a list: known from the table, in the store, or both.
type Row struct {
	Name     string     `json:"name"`
	Release  string     `json:"release,omitempty"`
	Version  string     `json:"version,omitempty"` // of Windows
	Editions []string   `json:"editions"`          // core, desktop
	Language string     `json:"language,omitempty"`
	Digest   string     `json:"digest"`
	Size     int64      `json:"size,omitempty"` // bytes, 0 where unknown
	InStore  bool       `json:"inStore"`
	Path     string     `json:"path,omitempty"` // in the store
	StandIn  bool       `json:"standIn,omitempty"`
	Added    *time.Time `json:"added,omitempty"`
	Source   string     `json:"source,omitempty"` // what it was added from
	URL      string     `json:"url,omitempty"`    // where it is downloaded from; empty where no address is known
	Page     string     `json:"page,omitempty"`
	Licence  string     `json:"licence,omitempty"`
	Accepted *time.Time `json:"accepted,omitempty"` // when the licence was accepted
}

// List lists the table's entries, in its order, then what else is in the
// store.
func (l *Library) List() ([]Row, error) {
	items, err := l.Items()
	if err != nil {
		return nil, err
	}
	var rows []Row
	for _, e := range l.table {
		r := Row{Name: e.Name, Release: e.Release, Version: e.Version, Editions: e.Editions, Language: e.Language, Digest: e.Digest(),
			Size: e.Size, Page: e.Page, Licence: e.Licence}
		if u, err := e.url(l.opts.BaseURL); err == nil {
			r.URL = u
		}
		if a, ok := l.Accepted(e); ok {
			r.Accepted = &a.Accepted
		}
		rows = append(rows, r)
	}
	for _, it := range items {
		i := slices.IndexFunc(rows, func(r Row) bool { return r.Digest == it.Digest })
		if i < 0 {
			rows = append(rows, Row{})
			i = len(rows) - 1
		}
		rows[i].fill(it)
	}
	return rows, nil
}

// fill says of a row what was found in the ISO itself.
func (r *Row) fill(it Item) {
	r.Name, r.Digest, r.Size, r.InStore, r.Path, r.Source = it.Name, it.Digest, it.Media.Size, true, it.Media.Path, it.Source
	r.Added, r.StandIn = &it.Added, it.Media.StandIn != nil
	r.Editions = nil
	for _, e := range it.Media.Editions {
		if k := e.Kind(); k != "" && !slices.Contains(r.Editions, k) {
			r.Editions = append(r.Editions, k)
		}
		if r.Release == "" {
			r.Release = e.Release()
		}
		if r.Version == "" || e.Release() != "" && newer(e.Version(), r.Version) {
			r.Version = e.Version()
		}
		if r.Language == "" && len(e.Languages) > 0 {
			r.Language = e.Languages[0]
		}
	}
	slices.SortFunc(r.Editions, func(a, b string) int { // core first: it is the default
		return boolInt(a != iso.Core) - boolInt(b != iso.Core)
	})
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
