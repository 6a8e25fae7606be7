package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/partition/gpt"

	"github.com/wbox-dev/wbox/scripts/standin/internal/answer"
)

// usual is the layout of our own answer files.
func usual() answer.Disk {
	return answer.Disk{Wipe: true,
		Create: []answer.Partition{{Type: "EFI", Size: 260}, {Type: "MSR", Size: 16}, {Type: "Primary", Size: 1024}, {Type: "Primary", Extend: true}},
		Modify: []answer.Modify{{PartitionID: 1, Format: "FAT32", Label: "System"}, {PartitionID: 2}, {PartitionID: 3, Format: "FAT32", Label: "WBOX"},
			{PartitionID: 4, Format: "NTFS", Label: "Windows", Letter: "C"}}}
}

func TestPlan(t *testing.T) {
	plan, err := Plan(usual(), 60<<30)
	if err != nil {
		t.Fatal(err)
	}
	want := []struct{ start, size int64 }{{1, 260}, {261, 16}, {277, 1024}, {1301, 60*1024 - 1301 - 1}}
	for i, w := range want {
		if plan[i].Start != w.start*MiB || plan[i].Size != w.size*MiB {
			t.Errorf("partition %d: %d MiB at %d, want %v", i+1, plan[i].Size/MiB, plan[i].Start/MiB, w)
		}
	}
	if got, err := target(plan, answer.Image{PartitionID: 4}); err != nil || got.Label != "Windows" {
		t.Errorf("target: %+v, %v", got, err)
	}
}

func TestPlanRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*answer.Disk)
		size   int64
		target int
		want   string
	}{
		"not wiped":       {func(d *answer.Disk) { d.Wipe = false }, 60 << 30, 4, "WillWipeDisk"},
		"small disk":      {func(*answer.Disk) {}, 1 << 30, 4, "no room"},
		"after extend":    {func(d *answer.Disk) { d.Create[2].Extend = true }, 60 << 30, 4, "no room"},
		"no such number":  {func(d *answer.Disk) { d.Modify[3].PartitionID = 9 }, 60 << 30, 4, "no partition 9"},
		"formatted MSR":   {func(d *answer.Disk) { d.Modify[1].Format = "NTFS" }, 60 << 30, 4, "reserved"},
		"EFI as NTFS":     {func(d *answer.Disk) { d.Modify[0].Format = "NTFS" }, 60 << 30, 4, "must be FAT32"},
		"small EFI":       {func(d *answer.Disk) { d.Create[0].Size = 50 }, 60 << 30, 4, "needs 100 MB"},
		"no EFI":          {func(d *answer.Disk) { d.Create[0].Type = "Primary" }, 60 << 30, 4, "one EFI system partition"},
		"target FAT32":    {func(*answer.Disk) {}, 60 << 30, 3, "partition 3"},
		"target missing":  {func(*answer.Disk) {}, 60 << 30, 7, "not made"},
		"target small":    {func(*answer.Disk) {}, 10 << 30, 4, "needs 20480"},
		"letter twice":    {func(d *answer.Disk) { d.Modify[2].Letter = "C" }, 60 << 30, 4, "twice"},
		"C: has a letter": {func(d *answer.Disk) { d.Modify[3].Letter = "W" }, 60 << 30, 4, "letter W"},
	} {
		t.Run(name, func(t *testing.T) {
			disk := usual()
			c.change(&disk)
			plan, err := Plan(disk, c.size)
			if err == nil {
				_, err = target(plan, answer.Image{PartitionID: c.target})
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestWriteTable(t *testing.T) {
	const size = 30 << 30
	plan, err := Plan(usual(), size)
	if err != nil {
		t.Fatal(err)
	}
	disk, err := os.Create(filepath.Join(t.TempDir(), "disk"))
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	if err := disk.Truncate(size); err != nil {
		t.Fatal(err)
	}
	guids, err := WriteTable(disk, size, plan)
	if err != nil {
		t.Fatal(err)
	}
	table, err := gpt.Read(file.New(disk, true), sector, sector)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range table.Partitions {
		if p.Type == gpt.Unused {
			continue
		}
		w := plan[p.Index-1]
		if p.Start*sector != uint64(w.Start) || p.Size != uint64(w.Size) || !strings.EqualFold(string(p.Type), string(w.typeGUID())) || !strings.EqualFold(p.GUID, guids[p.Index]) {
			t.Errorf("partition %d: %+v, want %+v", p.Index, p, w)
		}
	}
}
