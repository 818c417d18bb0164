package catalogue

// Source of every table: NVIDIA vGPU for Compute documentation, "NVIDIA vGPU types" (C-series): framebuffer
// in MiB and the most vGPUs per GPU, equal-size and mixed-size. MIG-backed 1-10C and 1-20C of the 40 and 80 GB
// boards, and every CME type, come to ESXi with vSphere 8.0 U3 (same source).
const update3 = "8.0.3.0"

func a100(prefix string) []Profile {
	return []Profile{
		sliced(prefix, "-40c", 40960, 1, 1), sliced(prefix, "-20c", 20480, 2, 2), sliced(prefix, "-10c", 10240, 4, 4),
		sliced(prefix, "-8c", 8192, 5, 4), sliced(prefix, "-5c", 5120, 8, 8), sliced(prefix, "-4c", 4096, 10, 8),
		mig(prefix, "-7-40c", 40960, 1, 7, ""), mig(prefix, "-4-20c", 20480, 1, 4, ""),
		mig(prefix, "-3-20c", 20480, 2, 3, ""), mig(prefix, "-2-10c", 10240, 3, 2, ""),
		mig(prefix, "-1-10c", 10240, 4, 1, update3), mig(prefix, "-1-5c", 5120, 7, 1, ""),
		mig(prefix, "-1-5cme", 5120, 1, 1, update3),
	}
}

func a100d(prefix string) []Profile {
	return []Profile{
		sliced(prefix, "-80c", 81920, 1, 1), sliced(prefix, "-40c", 40960, 2, 2), sliced(prefix, "-20c", 20480, 4, 4),
		sliced(prefix, "-16c", 16384, 5, 4), sliced(prefix, "-10c", 10240, 8, 8), sliced(prefix, "-8c", 8192, 10, 8),
		sliced(prefix, "-4c", 4096, 20, 16),
		mig(prefix, "-7-80c", 81920, 1, 7, ""), mig(prefix, "-4-40c", 40960, 1, 4, ""),
		mig(prefix, "-3-40c", 40960, 2, 3, ""), mig(prefix, "-2-20c", 20480, 3, 2, ""),
		mig(prefix, "-1-20c", 20480, 4, 1, update3), mig(prefix, "-1-10c", 10240, 7, 1, ""),
		mig(prefix, "-1-10cme", 10240, 1, 1, update3),
	}
}

// h100: NVIDIA prints 6 equal-size 16C, but 81920 / 16384 is 5 and NVIDIA's own configuration says 5.
func h100(prefix string) []Profile {
	return []Profile{
		sliced(prefix, "-80c", 81920, 1, 1), sliced(prefix, "-40c", 40960, 2, 2), sliced(prefix, "-20c", 20480, 4, 4),
		sliced(prefix, "-16c", 16384, 5, 4), sliced(prefix, "-10c", 10240, 8, 8), sliced(prefix, "-8c", 8192, 10, 8),
		sliced(prefix, "-5c", 5120, 16, 16), sliced(prefix, "-4c", 4096, 20, 16),
		mig(prefix, "-7-80c", 81920, 1, 7, ""), mig(prefix, "-4-40c", 40960, 1, 4, ""),
		mig(prefix, "-3-40c", 40960, 2, 3, ""), mig(prefix, "-2-20c", 20480, 3, 2, ""),
		mig(prefix, "-1-20c", 20480, 4, 1, update3), mig(prefix, "-1-10c", 10240, 7, 1, ""),
		mig(prefix, "-1-10cme", 10240, 1, 1, update3),
	}
}

func a30(prefix string) []Profile {
	return []Profile{
		sliced(prefix, "-24c", 24576, 1, 1), sliced(prefix, "-12c", 12288, 2, 2), sliced(prefix, "-8c", 8192, 3, 2),
		sliced(prefix, "-6c", 6144, 4, 4), sliced(prefix, "-4c", 4096, 6, 4),
		mig(prefix, "-4-24c", 24576, 1, 4, ""), mig(prefix, "-2-12c", 12288, 2, 2, ""),
		mig(prefix, "-2-12cme", 12288, 1, 2, update3), mig(prefix, "-1-6c", 6144, 4, 1, ""),
		mig(prefix, "-1-6cme", 6144, 1, 1, update3),
	}
}

func l40s(prefix string) []Profile {
	return []Profile{
		sliced(prefix, "-48c", 49152, 1, 1), sliced(prefix, "-24c", 24576, 2, 2), sliced(prefix, "-16c", 16384, 3, 2),
		sliced(prefix, "-12c", 12288, 4, 4), sliced(prefix, "-8c", 8192, 6, 4), sliced(prefix, "-6c", 6144, 8, 8),
		sliced(prefix, "-4c", 4096, 12, 8),
	}
}

// rtxPro6000 has some of the types: the time-sliced ones that divide 96 GB evenly, and those of MIG's four slices.
func rtxPro6000(prefix string) []Profile {
	return []Profile{
		sliced(prefix, "-96c", 98304, 1, 1), sliced(prefix, "-48c", 49152, 2, 2), sliced(prefix, "-32c", 32768, 3, 2),
		sliced(prefix, "-24c", 24576, 4, 4), sliced(prefix, "-12c", 12288, 8, 8),
		mig(prefix, "-4-96c", 98304, 1, 4, ""), mig(prefix, "-2-48c", 49152, 2, 2, ""), mig(prefix, "-1-24c", 24576, 4, 1, ""),
	}
}

// sliced is a time-sliced profile; the one that fits once is the full framebuffer.
func sliced(prefix, size string, mib, same, mixed int) Profile {
	return Profile{
		Name: prefix + size, FramebufferMiB: mib, MaxSameSize: same, MaxMixedSize: mixed, FullFramebuffer: same == 1,
	}
}

func mig(prefix, size string, mib, count, slices int, minAPI string) Profile {
	return Profile{
		Name: prefix + size, FramebufferMiB: mib, MaxSameSize: count, MIG: true, Slices: slices, MinAPI: minAPI,
	}
}
