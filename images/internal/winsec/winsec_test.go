package winsec

import (
	"encoding/base64"
	"testing"
)

// The wanted bytes are what Windows writes for the SDDL beside them; the images
// that BuildKit and Microsoft publish carry the same.
func TestDescriptors(t *testing.T) {
	for _, c := range []struct {
		sddl string
		d    Descriptor
		want string
	}{
		{"O:BAG:SYD:(A;;FA;;;BA)(A;;FA;;;SY)(A;;0x1200a9;;;BU)",
			Descriptor{Administrators(), System(), []ACE{{0, FileAll, Administrators()}, {0, FileAll, System()}, {0, ReadExecute, Users()}}},
			"AQAEgBQAAAAkAAAAAAAAADAAAAABAgAAAAAABSAAAAAgAgAAAQEAAAAAAAUSAAAAAgBMAAMAAAAAABgA/wEfAAECAAAAAAAFIAAAACACAAAAABQA/wEfAAEBAAAAAAAFEgAAAAAAGACpABIAAQIAAAAAAAUgAAAAIQIAAA=="},
		{"O:BAG:SYD:(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)(A;;FA;;;BA)(A;OICIIO;GA;;;CO)(A;OICI;0x1200a9;;;BU)(A;CI;LC;;;BU)(A;CI;DC;;;BU)",
			Descriptor{Administrators(), System(), []ACE{
				{ObjectInherit | ContainerInherit, FileAll, Administrators()}, {ObjectInherit | ContainerInherit, FileAll, System()},
				{0, FileAll, Administrators()}, {ObjectInherit | ContainerInherit | InheritOnly, GenericAll, CreatorOwner()},
				{ObjectInherit | ContainerInherit, ReadExecute, Users()}, {ContainerInherit, AddFolder, Users()}, {ContainerInherit, AddFile, Users()}}},
			"AQAEgBQAAAAkAAAAAAAAADAAAAABAgAAAAAABSAAAAAgAgAAAQEAAAAAAAUSAAAAAgCoAAcAAAAAAxgA/wEfAAECAAAAAAAFIAAAACACAAAAAxQA/wEfAAEBAAAAAAAFEgAAAAAAGAD/AR8AAQIAAAAAAAUgAAAAIAIAAAALFAAAAAAQAQEAAAAAAAMAAAAAAAMYAKkAEgABAgAAAAAABSAAAAAhAgAAAAIYAAQAAAABAgAAAAAABSAAAAAhAgAAAAIYAAIAAAABAgAAAAAABSAAAAAhAgAA"},
	} {
		if got := base64.StdEncoding.EncodeToString(c.d.Bytes()); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.sddl, got, c.want)
		}
	}
}
