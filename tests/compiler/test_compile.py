"""Constants, certificates and files."""

import json

import equinox as eqx
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from mechgap.compiler.affine import Affine, NotAffine, affine
from mechgap.compiler.ballast import ballast
from mechgap.compiler.compile import compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.files import save_compiled, save_for_dm_clrs
from mechgap.compiler.target import TARGETS, get_target
from mechgap.network.files import load_network
from mechgap.programs.expressions import edge, init, other, self
from mechgap.programs.library import bellman_ford, bfs


def test_affine_forms():
    form = affine(2 * (other.dist + edge.weight) - (1 - ~init.start))
    assert form == affine(2 * other.dist + 2 * edge.weight - init.start)
    assert affine(other.dist - other.dist) == Affine()
    with pytest.raises(NotAffine, match=r"'self\.a & other\.b' is not affine"):
        affine(1 + (self.a & other.b))


def test_ballast_balances_drift_and_noise():
    best = ballast(total=3.0, largest=1.0, hidden=128, unit=2**-24)
    x = np.zeros(128)
    x[:3] = 0.3, 1.0, 0.7
    x[4] = best.weight
    normed = best.scale * (x - x.mean()) / np.sqrt(x.var() + 1e-5) + best.offset
    read = normed[:3] - normed[3]
    assert np.abs(read - x[:3]).max() <= best.drift * 1.0
    assert best.drift + best.noise < 1e-4


def test_a_domain_that_cannot_be_met_names_the_quantity():
    with pytest.raises(ValueError, match=r"value_gap must be at least .*; got 1e-07. Use float64"):
        compile_program(bellman_ford, TARGETS["general"], Domain(value_gap=1e-7))
    with pytest.raises(ValueError, match=r"cannot be certified for stock-ln in float32"):
        compile_program(bfs, TARGETS["stock-ln"], Domain(steps=100_000))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"nodes": 0}, "nodes must be at least 1; got 0"),
        ({"position_gap": 0.0}, "position_gap must be above 0; got 0.0"),
        ({"value_gap": -1.0}, "value_gap must be above 0"),
        ({"dtype": "float16"}, "dtype must be float32 or float64; got float16"),
    ],
)
def test_impossible_domains_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        Domain(**wrong)


def test_float64_needs_jax_in_64_bit_mode():
    with pytest.raises(ValueError, match="float64 needs JAX's 64-bit mode"):
        compile_program(bfs, TARGETS["stock"], Domain(dtype="float64"))


def test_unknown_targets_name_the_nearest():
    with pytest.raises(ValueError, match=r"unknown target 'stok'\. Did you mean 'stock'"):
        get_target("stok")


@pytest.fixture(scope="module")
def compiled():
    return compile_program(bfs, TARGETS["stock"], Domain(), hidden_size=4)


def test_a_file_holds_the_network_and_its_story(compiled, tmp_path):
    path = tmp_path / "bfs.safetensors"
    save_compiled(compiled, path)
    network, about = load_network(path)
    assert eqx.tree_equal(network, compiled.network)
    assert about["source"] == str(bfs)
    assert about["target"] == "stock"
    assert about["certificate"]["domain"]["nodes"] == 64
    assert list(tmp_path.iterdir()) == [path]


def test_dm_clrs_files_have_haikus_names(compiled, tmp_path):
    path = tmp_path / "bfs.safetensors"
    save_for_dm_clrs(compiled, path)
    with safe_open(path, framework="numpy") as stored:
        names = set(stored.keys())
    assert "net/gatv2_aggr_clrs_processor/linear/w" in names
    assert "net/~_construct_encoders_decoders/algo_0_pi_dec_linear_3/b" in names
    with pytest.raises(ValueError, match="not a mechgap network"):
        load_network(path)


def test_damaged_files_are_clear_errors(compiled, tmp_path):
    path = tmp_path / "bfs.safetensors"
    with pytest.raises(ValueError, match="there is no file"):
        load_network(path)
    save_compiled(compiled, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"damaged or not a safetensors file"):
        load_network(path)
    path.write_bytes(b"not a tensor in sight")
    with pytest.raises(ValueError, match=r"damaged or not a safetensors file"):
        load_network(path)
    with pytest.raises(ValueError, match="there is no folder"):
        save_compiled(compiled, tmp_path / "nowhere" / "bfs.safetensors")


def test_metadata_that_does_not_fit_is_refused(compiled, tmp_path):
    path = tmp_path / "bfs.safetensors"
    save_compiled(compiled, path)
    with safe_open(path, framework="numpy") as stored:
        metadata, tensors = stored.metadata(), {k: stored.get_tensor(k) for k in stored.keys()}  # noqa: SIM118
    wider = {**json.loads(metadata["config"]), "hidden_size": 8}
    save_file(tensors, path, metadata={**metadata, "config": json.dumps(wider)})
    with pytest.raises(ValueError, match="are not those of the network it describes"):
        load_network(path)
    save_file(tensors, path, metadata={**metadata, "config": "{"})
    with pytest.raises(ValueError, match=r"metadata of .* is damaged"):
        load_network(path)
