package topology

import (
	"os"
	"path/filepath"
	"testing"
)

// Whatever is in a topology, Parse comes to an end and says what is wrong with it. The files that ship are always
// tried; `go test -fuzz FuzzParse ./topology` tries others as long as one likes.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("../../topologies/*.toml")
	if err != nil || len(files) == 0 {
		f.Fatalf("no topologies to begin with: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("[[host]]\nname = \"esx-[01-999999999].lab.test\"\nmodel = \"a\"\n")
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = Parse(text)
	})
}
