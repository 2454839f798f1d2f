//! Colours as CIE Lab in ONNX's operators; the maths is in the engine's `ops/lab`.
//! Matrices are convolutions of 1×1.

use anchorhood_engine::Window;

use super::{Writer, window};

/// X, Y and Z of red, green and blue, each divided by white's.
const XYZ: [f32; 9] = [
    0.412_456_4 / 0.950_47,
    0.357_576_1 / 0.950_47,
    0.180_437_5 / 0.950_47,
    0.212_672_9,
    0.715_152_2,
    0.072_175,
    0.019_333_9 / 1.088_83,
    0.119_192 / 1.088_83,
    0.950_304_1 / 1.088_83,
];
const LAB: [f32; 9] = [
    0.0,
    116.0 / 50.0,
    0.0,
    500.0 / 110.0,
    -500.0 / 110.0,
    0.0,
    0.0,
    200.0 / 110.0,
    -200.0 / 110.0,
];
const DELTA: f32 = 6.0 / 29.0;

impl Writer<'_> {
    /// `parameters` are the mean and the standard deviation that pictures were normalised by.
    pub(super) fn lab(&mut self, name: &str, x: String, parameters: &[usize]) -> String {
        let part = |p: &str| format!("{name}/{p}");
        let [mean, std] = [("mean", 0), ("std", 1)].map(|(of, k)| {
            let values = &self.tensors[parameters[k]].values;
            self.floats(&part(of), &[1, 3, 1, 1], values)
        });
        let [zero, one] = [("zero", 0.0), ("one", 1.0)].map(|(n, v)| self.scalar(&part(n), v));
        let y = self.node("Mul", &part("scaled"), &[x, std], vec![]);
        let y = self.node("Add", &part("shifted"), &[y, mean], vec![]);
        let v = self.node("Clip", &part("rgb"), &[y, zero, one], vec![]);
        let linear = self.linear(&part("linear"), v);
        let t = self.matrix(&part("xyz"), linear, &XYZ, &[0.0; 3]);
        let f = self.root(&part("f"), t);
        let lightness = -16.0 / 50.0 - 1.0;
        self.matrix(name, f, &LAB, &[lightness, 0.0, 0.0])
    }

    /// v / 12.92 where v ≤ 0.04045, else ((v + 0.055) / 1.055)^2.4.
    fn linear(&mut self, name: &str, v: String) -> String {
        let part = |p: &str| format!("{name}/{p}");
        let small = self.scaled(&part("small"), v.clone(), 1.0 / 12.92, 0.0);
        let base = self.scaled(&part("base"), v.clone(), 1.0 / 1.055, 0.055 / 1.055);
        let power = self.scalar(&part("power"), 2.4);
        let large = self.node("Pow", &part("large"), &[base, power], vec![]);
        self.up_to(name, v, 0.04045, [small, large])
    }

    /// t / 3δ² + 4/29 where t ≤ δ³, else ∛t.
    fn root(&mut self, name: &str, t: String) -> String {
        let part = |p: &str| format!("{name}/{p}");
        let slope = 1.0 / (3.0 * DELTA * DELTA);
        let small = self.scaled(&part("small"), t.clone(), slope, 4.0 / 29.0);
        let power = self.scalar(&part("power"), 1.0 / 3.0);
        let large = self.node("Pow", &part("large"), &[t.clone(), power], vec![]);
        self.up_to(name, t, DELTA.powi(3), [small, large])
    }

    /// The first of two where x is at most so large, else the second.
    fn up_to(&mut self, name: &str, x: String, most: f32, [small, large]: [String; 2]) -> String {
        let most = self.scalar(&format!("{name}/most"), most);
        let at_most = format!("{name}/at_most");
        let which = self.node("LessOrEqual", &at_most, &[x, most], vec![]);
        self.node("Where", name, &[which, small, large], vec![])
    }

    /// factor · x + more.
    fn scaled(&mut self, name: &str, x: String, factor: f32, more: f32) -> String {
        let factor = self.scalar(&format!("{name}/factor"), factor);
        let more = self.scalar(&format!("{name}/more"), more);
        let y = self.node("Mul", &format!("{name}/times"), &[x, factor], vec![]);
        self.node("Add", name, &[y, more], vec![])
    }

    fn matrix(&mut self, name: &str, x: String, matrix: &[f32; 9], bias: &[f32; 3]) -> String {
        let weight = self.floats(&format!("{name}/weight"), &[3, 3, 1, 1], matrix);
        let bias = self.floats(&format!("{name}/bias"), &[3], bias);
        let attributes = window(&Window::square(1, 1, 0));
        self.node("Conv", name, &[x, weight, bias], attributes)
    }

    fn scalar(&mut self, name: &str, value: f32) -> String {
        self.floats(name, &[], &[value])
    }
}
