package catalogue

import "testing"

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]string{}
	for _, board := range boards {
		for _, name := range append([]string{board.Name}, profileNames(board)...) {
			if other, taken := seen[name]; taken {
				t.Errorf("%s of %s is also a name of %s", name, board.Name, other)
			}
			seen[name] = board.Name
		}
	}
}

func profileNames(board Board) []string {
	var names []string
	for _, profile := range board.Profiles {
		names = append(names, profile.Name)
	}
	return names
}

func TestNoProfileOverfillsItsBoard(t *testing.T) {
	for _, board := range boards {
		for _, profile := range board.Profiles {
			if profile.FramebufferMiB*profile.MaxSameSize > board.MemoryMiB {
				t.Errorf("%d x %s exceed %d MiB", profile.MaxSameSize, profile.Name, board.MemoryMiB)
			}
			if profile.MIG && profile.Slices*profile.MaxSameSize > board.MIGSlices() {
				t.Errorf("%d x %s exceed %d slices", profile.MaxSameSize, profile.Name, board.MIGSlices())
			}
			if profile.MIG && !board.MIG {
				t.Errorf("%s is MIG-backed on %s, which has no MIG", profile.Name, board.Name)
			}
		}
	}
}

func TestFullProfileTakesTheWholeGPU(t *testing.T) {
	for _, board := range boards {
		if board.Kind == NIC {
			continue
		}
		full, ok := board.FullProfile()
		if !ok || full.FramebufferMiB != board.MemoryMiB {
			t.Errorf("%s: full profile %q has %d MiB of %d", board.Name, full.Name, full.FramebufferMiB, board.MemoryMiB)
		}
	}
}

func TestProfileNamedFindsBoardAndProfile(t *testing.T) {
	profile, board, ok := ProfileNamed("grid_a100-3-20c")
	if !ok || board.Name != "A100-PCIE-40GB" || !profile.MIG || profile.Slices != 3 || profile.MaxSameSize != 2 {
		t.Errorf("got %+v of %s, %t", profile, board.Name, ok)
	}
	if _, _, ok := ProfileNamed("grid_a100-41c"); ok {
		t.Error("an unknown profile was found")
	}
}
