"""PyTorch's attention and matrix products on shapes of kernel_time: what msim's own kernels are compared with.

Prints CSV: op,library,sizes,median_us,teraflops. Exits with 77 where there is no PyTorch.
"""
import sys

try:
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError:
    print("skipped: no PyTorch here")
    sys.exit(77)

FLUSH = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")  # larger than the second-level cache
PRODUCTS = ((8192, 8192, 8192), (2048, 4608, 12288), (2048, 12288, 1536), (4096, 14336, 4096))
TOKENS, WARM_UP, REPEATS = 16384, 3, 21


def random(*sizes, gradient=False):
    return torch.randn(*sizes, device="cuda", dtype=torch.bfloat16, requires_grad=gradient)


def median_us(run):
    times = []
    for i in range(WARM_UP + REPEATS):
        FLUSH.fill_(i)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        end.synchronize()
        if i >= WARM_UP:
            times.append(begin.elapsed_time(end) * 1e3)
    return sorted(times)[len(times) // 2]


def row(op, library, sizes, us, flops):
    print(f"{op},{library},{sizes},{us:.2f},{flops / us * 1e-6:.1f}", flush=True)


def attention(name, backend, s, heads, d):
    batch = TOKENS // s
    q, k, v = (random(batch, heads, s, d, gradient=True) for _ in range(3))
    sizes, flops = f"batch={batch} s={s} heads={heads} d={d}", 4.0 * d * heads * batch * s * (s + 1) / 2
    with sdpa_kernel(backend):
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        gradient = torch.randn_like(out)
        forward = median_us(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True))
        backward = median_us(lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True))
    row("attention_forward", name, sizes, forward, flops)
    row("attention_backward", name, sizes, backward, 2.5 * flops)


print("op,library,sizes,median_us,teraflops")
for s in (2048, 4096, 8192):
    for heads, d in ((16, 128), (32, 64)):
        for name, backend in (("flash", SDPBackend.FLASH_ATTENTION), ("cudnn", SDPBackend.CUDNN_ATTENTION)):
            try:
                attention(name, backend, s, heads, d)
            except RuntimeError as error:
                print(f"# {name}: {str(error).splitlines()[0]}")
for m, n, k in PRODUCTS:
    a, w = random(m, k), random(n, k)
    row("linear_forward", "cublas", f"m={m} n={n} k={k}", median_us(lambda: F.linear(a, w)), 2.0 * m * n * k)
