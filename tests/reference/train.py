# SPDX-License-Identifier: MIT
"""Trains the model of a configuration with PyTorch's autograd and optimizer: an independent calculation of the step.

Reads the merged configuration, the exported initial weights and the exported tokens; prints the loss and the gradient
norm of every step as JSON."""
import argparse
import json
import math

import torch
import torch.nn.functional as F

import safetensors
from configuration import read_config

ROUTER_BIAS = "router.bias"    # of all layers with experts, which no gradient moves


def to_torch(tensor):
    dtype = {"f": torch.float32, "i": torch.int32}[tensor.values.typecode]
    return torch.tensor(tensor.values, dtype=dtype).reshape(tensor.shape)


def rope_angles(model, sequence):
    """Returns [sequence, rotary / 2] in double precision, with Llama 3.1's frequency scaling."""
    rotary = model.rope_dim if model.kv_rank > 0 else int(model.head_dim * model.rope_fraction)
    if model.positions != "rotary":
        rotary = 0
    frequencies = model.rope_theta ** (-torch.arange(0, rotary, 2, dtype=torch.float64) / rotary)
    if model.rope_scaling != 1:
        low, high, context = 1, 4, 8192
        wavelength = 2 * math.pi / frequencies
        smooth = ((context / wavelength - low) / (high - low)).clamp(0, 1)
        frequencies = (1 - smooth) * frequencies / model.rope_scaling + smooth * frequencies
    return torch.outer(torch.arange(sequence, dtype=torch.float64), frequencies)


def rotate(x, angles):
    """x: [batch, heads, sequence, head_dim]. Rotates the first elements of each head, pairing their first half with
    the second."""
    half = angles.shape[1]
    a, b, rest = x[..., :half], x[..., half:2 * half], x[..., 2 * half:]
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return torch.cat((a * cos - b * sin, b * cos + a * sin, rest), dim=-1)


def root_mean_square_norm(x, weight, epsilon):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon) * weight


def normalise(x, weights, name, model):
    weight = weights[name + ".weight"]
    if model.norm == "rmsnorm":
        return root_mean_square_norm(x, weight, model.norm_epsilon)
    if model.norm == "layernorm1p":
        weight = weight + 1
    return F.layer_norm(x, (model.hidden,), weight, weights[name + ".bias"], model.norm_epsilon)


def linear(x, weights, name):
    return F.linear(x, weights[name + ".weight"], weights.get(name + ".bias"))


def make_heads(x, weights, name, model, angles):
    """Returns queries, keys and values [batch, heads, sequence, head width], with keys and values repeated for the
    queries of their group."""
    batch, sequence, _ = x.shape

    def heads(projection, count):
        return linear(x, weights, name + projection).view(batch, sequence, count, model.head_dim).transpose(1, 2)

    def normalised(projection, count):
        head = heads(f"{projection}_proj", count)
        if model.qk_norm:
            head = root_mean_square_norm(head, weights[f"{name}{projection}_norm.weight"], model.norm_epsilon)
        return rotate(head, angles)

    group = model.heads // model.kv_heads
    pairs = normalised("k", model.kv_heads), heads("v_proj", model.kv_heads)
    return normalised("q", model.heads), *(head.repeat_interleave(group, dim=1) for head in pairs)


def make_latent_heads(x, weights, name, model, angles):
    """Like make_heads, from compressed vectors (DeepSeek-AI, "DeepSeek-V2", 2024, sections 2.1 and 3.1.2). The first
    head_dim elements of each head carry no position; the others are rotated, and for keys they are shared by all
    heads and computed from x. The norms apply to the compressed vectors."""
    batch, sequence, _ = x.shape
    value_dim = model.value_dim or model.head_dim

    def compressed(matrix, projection):
        return root_mean_square_norm(F.linear(x, matrix), weights[f"{name}{projection}_a_layernorm.weight"],
                                     model.latent_norm_epsilon)

    def split_heads(rows, *widths):
        return rows.view(batch, sequence, model.heads, sum(widths)).transpose(1, 2).split(widths, dim=-1)

    if model.q_rank > 0:
        queries = linear(compressed(weights[name + "q_a_proj.weight"], "q"), weights, name + "q_b_proj")
    else:
        queries = linear(x, weights, name + "q_proj")
    query, query_rotating = split_heads(queries, model.head_dim, model.rope_dim)
    down, key_matrix = weights[name + "kv_a_proj_with_mqa.weight"].split((model.kv_rank, model.rope_dim))
    key, value = split_heads(linear(compressed(down, "kv"), weights, name + "kv_b_proj"), model.head_dim, value_dim)
    key_rotating = rotate(F.linear(x, key_matrix).unsqueeze(1), angles).expand(-1, model.heads, -1, -1)
    return torch.cat((query, rotate(query_rotating, angles)), dim=-1), torch.cat((key, key_rotating), dim=-1), value


def alibi_slopes(heads):
    """Press et al., "Train short, test long" (2022); footnote 8 defines slopes if the number of heads is no power of
    two."""
    whole = 2 ** int(math.log2(heads))
    slopes = [2 ** (-8 * (i + 1) / whole) for i in range(whole)]
    return slopes if whole == heads else slopes + alibi_slopes(2 * whole)[::2][:heads - whole]


def attend(x, weights, name, model, angles, window):
    """window: number of positions that a query sees; 0: all up to its own."""
    batch, sequence, _ = x.shape
    make = make_latent_heads if model.kv_rank > 0 else make_heads
    query, key, value = make(x, weights, name, model, angles)
    scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[-1])
    if model.positions == "alibi":
        places = torch.arange(sequence, dtype=scores.dtype)
        slopes = torch.tensor(alibi_slopes(model.heads), dtype=scores.dtype)
        scores = scores - slopes.view(-1, 1, 1) * (places.view(-1, 1) - places)
    hidden = torch.ones(sequence, sequence, dtype=torch.bool).triu(1)
    if window > 0:
        hidden |= torch.ones(sequence, sequence, dtype=torch.bool).tril(-window)
    scores = scores.masked_fill(hidden, -math.inf)
    if model.attention_sinks:
        sinks = weights[name + "sinks"].view(1, -1, 1, 1).expand(batch, -1, sequence, 1)
        scores = torch.cat((scores, sinks), dim=-1)
    out = scores.softmax(-1)[..., :sequence] @ value
    return linear(out.transpose(1, 2).reshape(batch, sequence, -1), weights, name + "o_proj")


def feed_forward(x, weights, model, gate, up, down):
    """MLP with these matrices; only gated activations use gate."""
    hidden = linear(x, weights, up)
    if model.activation in ("swiglu", "geglu"):
        opening = linear(x, weights, gate)
        hidden = (F.silu(opening) if model.activation == "swiglu" else F.gelu(opening, approximate="tanh")) * hidden
    else:
        hidden = F.gelu(hidden, approximate="tanh") if model.activation == "gelu" else F.relu(hidden).square()
    return linear(hidden, weights, down)


def keep_best_groups(keys, model):
    """Masks experts with -inf unless their group is among the best by the sum of its two best experts."""
    groups = keys.view(len(keys), model.router_groups, -1)
    best = groups.topk(2, dim=-1).values.sum(-1).topk(model.router_top_groups, dim=-1).indices
    kept = torch.zeros(groups.shape[:2], dtype=torch.bool).scatter(1, best, True)
    return groups.masked_fill(~kept.unsqueeze(-1), -math.inf).view_as(keys)


def choose_experts(scores, probabilities, bias, model):
    """Returns the expert of each choice [tokens, top_k], its gate, and whether the expert accepts it. scores:
    [tokens, experts]."""
    keys = scores.detach() + bias
    if model.router_groups > 0:
        keys = keep_best_groups(keys, model)
    experts = keys.sort(dim=-1, descending=True, stable=True).indices[:, :model.top_k]
    gates = scores.gather(1, experts)
    if model.router_normalise:
        gates = gates / gates.sum(-1, keepdim=True)
    gates = gates * model.router_scale
    taken = torch.ones_like(experts, dtype=torch.bool)
    if model.capacity_factor > 0:
        capacity = math.ceil(experts.numel() * model.capacity_factor / model.experts)
        for expert in range(model.experts):
            token, choice = (experts == expert).nonzero(as_tuple=True)
            least = probabilities[token, expert].sort(descending=True, stable=True).indices[capacity:]
            taken[token[least], choice[least]] = False
    return experts, gates, taken


class Balance:
    """Router state per layer: the biases added to scores for the choice, how often each expert was chosen in a step,
    and the margin between the last chosen and the first rejected logit [tokens]."""

    def __init__(self, biases=None):
        """biases: [layers with experts, experts], updated each step; None if the model has none."""
        self.biases, self.rows, self.loads, self.margins = biases, {}, {}, []

    def bias_of(self, name):
        """Returns the layer's bias. Layers come in the same order in every pass."""
        row = self.rows.setdefault(name, len(self.rows))
        return 0 if self.biases is None else self.biases[row]

    def add(self, name, experts, count):
        self.loads[name] = self.loads.get(name, 0) + experts.flatten().bincount(minlength=count)

    def move(self, rate):
        if self.biases is not None:
            for name, load in self.loads.items():
                self.bias_of(name).add_(rate * (load.double().mean() - load).sign())
        self.loads = {}


def mix_experts(x, weights, name, model, balance):
    """Returns the output of the experts for tokens [tokens, hidden] that compete for capacity, and the auxiliary
    loss summed over tokens."""
    logits = linear(x, weights, name + "gate")
    scores = logits.sigmoid() if model.router_score == "sigmoid" else logits.softmax(-1)
    probabilities = scores / scores.sum(-1, keepdim=True)
    experts, gates, taken = choose_experts(scores, probabilities.detach(), balance.bias_of(name), model)
    balance.add(name, experts, model.experts)
    if model.top_k < model.experts:
        ordered = logits.detach().sort(dim=-1, descending=True).values
        balance.margins.append(ordered[:, model.top_k - 1] - ordered[:, model.top_k])
    out = torch.zeros_like(x)
    parts = ("w1", "w3", "w2") if "block_sparse_moe" in name else ("gate_proj", "up_proj", "down_proj")
    for expert in range(model.experts):
        matrices = (f"{name}experts.{expert}.{part}" for part in parts)
        is_chosen = taken & (experts == expert)
        gate = (gates * is_chosen).sum(-1, keepdim=True)
        if model.router_gates == "input":
            out = out + is_chosen.any(-1, keepdim=True) * feed_forward(gate * x, weights, model, *matrices)
        else:
            out = out + gate * feed_forward(x, weights, model, *matrices)
    if model.shared_ffn > 0:
        shared = name.replace("block_sparse_moe", "mlp") + "shared_experts."
        out = out + feed_forward(x, weights, model, *(shared + part for part in ("gate_proj", "up_proj", "down_proj")))
    # DeepSeek-V3's equation 18 counts the experts with the largest scores, regardless of groups and biases.
    scored = scores.detach().topk(model.top_k, dim=-1).indices
    shares = scored.flatten().bincount(minlength=model.experts) / scored.numel()
    return out, model.auxiliary_loss * model.experts * (shares * probabilities).sum()


def mix(x, weights, name, config, balance):
    """Returns the MLP or MoE output of a layer and its auxiliary loss. x: [batch, sequence, hidden]."""
    model = config.model
    if name + "mlp.up_proj.weight" in weights:
        name += "mlp."
        return feed_forward(x, weights, model, name + "gate_proj", name + "up_proj", name + "down_proj"), 0
    groups = list(x) if config.train.capacity_scope == "sequence" else [x.flatten(0, 1)]
    name += "mlp." if model.family == "qwen3_moe" else "block_sparse_moe."
    mixed = [mix_experts(group, weights, name, model, balance) for group in groups]
    return torch.stack([out for out, _ in mixed]).view_as(x), sum(auxiliary for _, auxiliary in mixed)


def run_layer(x, weights, layer, config, angles, balance):
    """Returns the residual stream after a layer, and its auxiliary loss."""
    model, name = config.model, f"model.layers.{layer}."
    window = model.window if layer % 2 == 0 else 0    # patterns with windows begin with one, in every second layer
    normalised = normalise(x, weights, name + "input_layernorm", model)
    x = x + attend(normalised, weights, name + "self_attn.", model, angles, window)
    mixed, own = mix(normalise(x, weights, name + "post_attention_layernorm", model), weights, name, config, balance)
    return x + mixed, own


def embed(tokens, weights, model):
    return model.embedding_scale * F.embedding(tokens, weights["model.embed_tokens.weight"])


def combine(outputs, tokens, weights, layer, model):
    """Returns the input of an MTP module (DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, section 2.2). The
    embedding comes first, as in DeepSeek's weights."""
    name = f"model.layers.{layer}."
    rows = normalise(embed(tokens, weights, model), weights, name + "enorm", model)
    return linear(torch.cat((rows, normalise(outputs, weights, name + "hnorm", model)), dim=-1), weights, name + "eh_proj")


def run_layers(weights, tokens, config, angles, balance):
    """Returns the input of the head, and the auxiliary loss summed over tokens. tokens: [batch, sequence]."""
    model, auxiliary = config.model, 0
    x = embed(tokens, weights, model)
    if model.positions == "learned":
        x = x + weights["model.embed_positions.weight"][:tokens.shape[1]]
    for layer in range(model.layers):
        x, own = run_layer(x, weights, layer, config, angles, balance)
        auxiliary = auxiliary + own
    return normalise(x, weights, "model.norm", model), auxiliary


def logits_of(outputs, weights, model):
    head = weights["model.embed_tokens.weight" if model.tied else "lm_head.weight"]
    return model.logit_scale * F.linear(outputs, head)


def forward(weights, tokens, config, angles, balance):
    """Returns logits [batch, sequence, vocabulary], and the auxiliary loss summed over tokens. tokens: [batch,
    sequence]."""
    outputs, auxiliary = run_layers(weights, tokens, config, angles, balance)
    return logits_of(outputs, weights, config.model), auxiliary


def entropy_of(outputs, targets, weights, model):
    return F.cross_entropy(logits_of(outputs, weights, model).flatten(0, 1), targets.flatten(), reduction="sum")


def loss_sums(weights, tokens, config, angles, balance):
    """Returns sums over the tokens of a microbatch: next-token cross entropy, mean MTP cross entropy, and auxiliary
    loss. tokens: [batch, sequence + 1 + MTP depth]."""
    model, sequence, further = config.model, config.train.sequence, 0

    def ahead(count):
        return tokens[:, count:count + sequence]

    outputs, auxiliary = run_layers(weights, ahead(0), config, angles, balance)
    entropy = entropy_of(outputs, ahead(1), weights, model)
    for depth in range(model.predicted_tokens):
        layer = model.layers + depth
        x = combine(outputs, ahead(depth + 1), weights, layer, model)
        x, own = run_layer(x, weights, layer, config, angles, balance)
        outputs = normalise(x, weights, f"model.layers.{layer}.shared_head.norm", model)
        further = further + entropy_of(outputs, ahead(depth + 2), weights, model) / model.predicted_tokens
        auxiliary = auxiliary + own
    return entropy, further, auxiliary


def to_parameters(weights, dtype):
    return {name: to_torch(tensor).to(dtype).requires_grad_() for name, tensor in weights.items()}


def train(config, parameters, tokens):
    """Updates the parameters and yields (next-token loss, gradient norm) of each step.
    tokens: [steps, global_batch, sequence + 1 + MTP depth]."""
    settings = config.train
    trained = [parameter for name, parameter in parameters.items() if name != ROUTER_BIAS]
    optimizer = torch.optim.AdamW(trained, lr=settings.learning_rate, eps=settings.epsilon,
                                  betas=(settings.beta1, settings.beta2), weight_decay=settings.weight_decay)
    angles = rope_angles(config.model, settings.sequence)
    count = tokens.shape[1] * settings.sequence
    biases = parameters[ROUTER_BIAS].detach().view(-1, config.model.experts) if ROUTER_BIAS in parameters else None
    balance = Balance(biases)
    limit = settings.clip if settings.clip > 0 else math.inf
    for batch in tokens:
        optimizer.zero_grad()
        loss = 0
        for microbatch in batch.split(settings.micro_batch):
            entropy, further, auxiliary = loss_sums(parameters, microbatch, config, angles, balance)
            ((entropy + settings.prediction_weight * further + auxiliary) / count).backward()
            loss += entropy.item() / count
        norm = torch.nn.utils.clip_grad_norm_(trained, limit)
        optimizer.step()
        balance.move(config.model.router_bias_rate)
        yield loss, norm.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="config.merged.ini of a run")
    parser.add_argument("--weights", required=True, help="folder that gswbench weights wrote")
    parser.add_argument("--tokens", required=True, help="file that gswbench data wrote")
    parser.add_argument("--dtype", default="float64", choices=["float32", "float64"])
    arguments = parser.parse_args()
    parameters = to_parameters(safetensors.read_folder(arguments.weights), getattr(torch, arguments.dtype))
    tokens = to_torch(safetensors.read(arguments.tokens)["tokens"]).long()
    steps = train(read_config(arguments.config), parameters, tokens)
    print(json.dumps([{"loss": loss, "gradient_norm": norm} for loss, norm in steps]))


if __name__ == "__main__":
    main()
