// Package answer reads Autounattend.xml as strictly as a stand-in for Windows
// Setup must: what it does not know is an error, not something to pass over, so
// that an answer file which only the stand-in accepts can't come about.
//
// Names and meanings are those of Microsoft's unattended Windows Setup
// reference. The package must not import the renderer of answer files
// (builder/answerfile): it is there to contradict it.
package answer

// Answer is what Setup has to do. All lists are in execution order.
type Answer struct {
	Disks          []Disk
	Image          Image
	AcceptEULA     bool
	ProductKey     string // five groups of five; empty for evaluation media
	FullName       string
	Organization   string
	Locale         map[string]string // UILanguage, InputLocale, ... as given
	ComputerName   string            // "*" or empty: Windows makes one up
	TimeZone       string
	EnableLUA      bool // user account control, true unless switched off
	FirewallGroups []FirewallGroup
	SpecializeRun  []Command
	Administrator  *Password // the built-in account's, nil if none is set
	Accounts       []Account
	AutoLogon      AutoLogon
	FirstLogon     []Command
	Settings       map[string]string // everything else that is only stored: "component/setting" -> value
}

// Disk is one disk to partition.
type Disk struct {
	ID     int
	Wipe   bool
	Create []Partition // by Order
	Modify []Modify    // by Order
}

// Partition is one partition to create.
type Partition struct {
	Order  int
	Type   string // EFI, MSR or Primary
	Size   int    // MB, as Windows counts them (1,048,576 bytes); 0 with Extend
	Extend bool
}

// Modify says what becomes of a created partition.
type Modify struct {
	Order       int
	PartitionID int    // which one, counted from 1
	Format      string // FAT32, NTFS or empty
	Label       string
	Letter      string
	TypeID      string // a partition type GUID, or empty
}

// Image chooses an image and where it goes.
type Image struct {
	Name        string // /IMAGE/NAME
	Index       int    // /IMAGE/INDEX, from 1; 0 if not given
	DiskID      int
	PartitionID int
}

// FirewallGroup is one rule group to switch.
type FirewallGroup struct {
	Name    string // the element's key
	Active  bool
	Group   string
	Profile string
}

// Command is one command line.
type Command struct {
	Order int
	Line  string
}

// Account is one local account.
type Account struct {
	Name     string
	Groups   []string
	Password Password
}

// Password is a password in clear text, whatever form the file had it in.
type Password struct {
	Value string
}

// AutoLogon is the account that logs on by itself.
type AutoLogon struct {
	Enabled bool
	User    string
	Count   int
}
