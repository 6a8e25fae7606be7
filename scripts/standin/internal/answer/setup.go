package answer

import (
	"regexp"
	"strconv"
	"strings"
)

var productKey = regexp.MustCompile(`^[A-Z0-9]{5}(-[A-Z0-9]{5}){4}$`)

// readSetup reads Microsoft-Windows-Setup of the windowsPE pass.
func readSetup(r *reader, n *node, a *Answer) {
	if disks := r.child(n, "DiskConfiguration"); disks != nil {
		readDisks(r, disks, a)
	}
	if image := r.child(n, "ImageInstall"); image != nil {
		readImage(r, image, a)
	}
	if user := r.child(n, "UserData"); user != nil {
		a.AcceptEULA = r.boolean(user, "AcceptEula", false)
		a.FullName, a.Organization = r.text(user, "FullName"), r.text(user, "Organization")
		if key := r.child(user, "ProductKey"); key != nil {
			readProductKey(r, key, a)
		}
		r.done(user)
	}
	if update := r.child(n, "DynamicUpdate"); update != nil {
		if r.boolean(update, "Enable", true) {
			r.fail(update, "Setup would look for updates; a bake has no network")
		}
		r.choice(update, "WillShowUI", "OnError", "Always", "Never")
		r.done(update)
	}
	if diagnostics := r.child(n, "Diagnostics"); diagnostics != nil {
		stored("OptIn")(r, diagnostics, a)
		r.done(diagnostics)
	}
	stored("EnableFirewall", "EnableNetwork")(r, n, a)
}

// readProductKey knows what stops Setup on Server media: a Key that is there and
// empty (OpenNebula/one-apps#225). Left out, evaluation media take their own.
func readProductKey(r *reader, n *node, a *Answer) {
	key := r.child(n, "Key")
	if key != nil {
		r.done(key)
		a.ProductKey = key.text
		if !productKey.MatchString(key.text) {
			r.fail(key, "%q is no product key: Setup stops at it", key.text)
		}
	}
	r.choice(n, "WillShowUI", "OnError", "Always", "Never")
	r.done(n)
}

func readDisks(r *reader, n *node, a *Answer) {
	r.choice(n, "WillShowUI", "OnError", "Always", "Never")
	for _, item := range n.children {
		if item.name != "Disk" {
			continue
		}
		item.used = true
		if item.attrs["wcm:action"] != "add" {
			r.fail(item, `a list item needs wcm:action="add"`)
		}
		delete(item.attrs, "wcm:action")
		disk := Disk{ID: r.number(item, "DiskID"), Wipe: r.boolean(item, "WillWipeDisk", false)}
		for _, part := range r.list(r.child(item, "CreatePartitions"), "CreatePartition") {
			disk.Create = append(disk.Create, readPartition(r, part))
		}
		sortByOrder(r, item, disk.Create, func(p Partition) int { return p.Order })
		for _, mod := range r.list(r.child(item, "ModifyPartitions"), "ModifyPartition") {
			disk.Modify = append(disk.Modify, readModify(r, mod))
		}
		sortByOrder(r, item, disk.Modify, func(m Modify) int { return m.Order })
		r.done(item)
		a.Disks = append(a.Disks, disk)
	}
	r.done(n)
}

func readPartition(r *reader, n *node) Partition {
	p := Partition{Order: r.number(n, "Order"), Type: r.choice(n, "Type", "EFI", "MSR", "Primary"),
		Size: r.number(n, "Size"), Extend: r.boolean(n, "Extend", false)}
	r.done(n)
	if p.Extend == (p.Size > 0) {
		r.fail(n, "exactly one of Size and Extend=true must be given")
	}
	return p
}

func readModify(r *reader, n *node) Modify {
	m := Modify{Order: r.number(n, "Order"), PartitionID: r.number(n, "PartitionID"),
		Format: r.choice(n, "Format", "FAT32", "NTFS"), Label: r.text(n, "Label"),
		Letter: r.text(n, "Letter"), TypeID: r.text(n, "TypeID")}
	r.done(n)
	if len(m.Letter) > 1 || (m.Letter != "" && (m.Letter < "C" || m.Letter > "Z")) {
		r.fail(n, "Letter %q is not one of C to Z", m.Letter)
	}
	limit := 32
	if m.Format == "FAT32" {
		limit = 11
	}
	if len([]rune(m.Label)) > limit {
		r.fail(n, "Label %q has more than %d characters", m.Label, limit)
	}
	return m
}

func readImage(r *reader, n *node, a *Answer) {
	os := r.child(n, "OSImage")
	if os == nil {
		r.fail(n, "holds no OSImage")
		return
	}
	for _, item := range r.list(r.child(os, "InstallFrom"), "MetaData") {
		value := r.text(item, "Value")
		switch r.choice(item, "Key", "/IMAGE/NAME", "/IMAGE/INDEX") {
		case "/IMAGE/NAME":
			a.Image.Name = value
		case "/IMAGE/INDEX":
			index, err := strconv.Atoi(value)
			if err != nil || index < 1 {
				r.fail(item, "%q is not an index", value)
			}
			a.Image.Index = index
		}
		r.done(item)
	}
	if to := r.child(os, "InstallTo"); to != nil {
		a.Image.DiskID, a.Image.PartitionID = r.number(to, "DiskID"), r.number(to, "PartitionID")
		r.done(to)
	}
	if a.Image.PartitionID == 0 {
		r.fail(os, "InstallTo names no partition: Setup would ask")
	}
	r.choice(os, "WillShowUI", "OnError", "Always", "Never")
	r.done(os)
	r.done(n)
}

// splitGroups splits a list of groups, which semicolons separate.
func splitGroups(s string) []string {
	var groups []string
	for _, g := range strings.Split(s, ";") {
		if g = strings.TrimSpace(g); g != "" {
			groups = append(groups, g)
		}
	}
	return groups
}
